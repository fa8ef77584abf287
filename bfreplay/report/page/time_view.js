// The part of the window that all figures over time show, in seconds since its start.
"use strict";

const timeAxis = JSON.parse(document.getElementById("data-window").textContent);  // start_ms or null, duration_s, shown_s or null, unit, unit_s
const view = {from: 0, to: timeAxis.shown_s ?? timeAxis.duration_s};
const whenMoved = [];
const SHORTEST_S = 1;

function toAxis(seconds) {
  return timeAxis.start_ms === null ? seconds / timeAxis.unit_s : timeAxis.start_ms + seconds * 1000;
}

// Plotly tells dates as "2021-02-10 00:48:48.5", in UTC, the time of day left out where it is midnight.
function fromAxis(value) {
  if (timeAxis.start_ms === null) return Number(value) * timeAxis.unit_s;
  if (typeof value === "number") return (value - timeAxis.start_ms) / 1000;
  const [day, time = "00:00"] = value.split(" ");
  return (Date.parse(`${day}T${time.split(":").length < 2 ? `${time}:00` : time}Z`) - timeAxis.start_ms) / 1000;
}

function timeText(seconds) {
  if (timeAxis.start_ms === null) return `${(seconds / timeAxis.unit_s).toFixed(2)} ${timeAxis.unit}`;
  return new Date(timeAxis.start_ms + seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

function setView(from, to) {
  const length = Math.min(Math.max(to - from, SHORTEST_S), timeAxis.duration_s);
  const begin = Math.min(Math.max(from + (to - from - length) / 2, 0), timeAxis.duration_s - length);
  view.from = begin;
  view.to = begin + length;
  whenMoved.forEach((redraw) => redraw());  // also when nothing has changed: a picture may have been moved past the ends
}

function zoom(factor) {
  const middle = (view.from + view.to) / 2;
  const half = ((view.to - view.from) * factor) / 2;
  setView(middle - half, middle + half);
}

function pan(share) {
  const by = (view.to - view.from) * share;
  const from = Math.min(Math.max(view.from + by, 0), timeAxis.duration_s - (view.to - view.from));
  setView(from, from + (view.to - view.from));
}

const MOVES = {
  whole: () => setView(0, timeAxis.duration_s), in: () => zoom(0.5), out: () => zoom(2),
  earlier: () => pan(-0.5), later: () => pan(0.5),
};
const KEYS = {Home: "whole", "+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later"};

function startTimeView() {
  document.querySelectorAll("button[data-move]").forEach((button) => {
    button.addEventListener("click", () => MOVES[button.dataset.move]());
  });
  document.querySelectorAll(".over-time").forEach((frame) => {
    frame.addEventListener("keydown", (event) => {
      const move = KEYS[event.key];
      if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      MOVES[move]();
    });
  });
  const tell = () => {
    document.querySelectorAll(".view").forEach((each) => {
      each.textContent = `${timeText(view.from)} to ${timeText(view.to)}`;
    });
  };
  whenMoved.push(tell);
  tell();
}
