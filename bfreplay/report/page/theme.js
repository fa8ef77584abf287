// Light and dark: the reader's choice, at first that of the system; paper is always light.
"use strict";

const palettes = JSON.parse(document.getElementById("data-palettes").textContent);
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
let theme = systemTheme.matches ? "dark" : "light";
const whenThemed = [];

function colour(name) {
  return palettes[theme][name];
}

// "@name" becomes the colour of that name where a colour belongs; elsewhere it may be the name of a job.
function coloured(value, isColour = false) {
  if (typeof value === "string") return isColour && value.startsWith("@") ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((each) => coloured(each, isColour));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coloured(each, /color(scale)?$/.test(key))]));
}

function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme-button");
  button.hidden = false;
  button.textContent = name === "dark" ? "Light theme" : "Dark theme";
  whenThemed.forEach((redraw) => redraw());
}

function startTheme() {
  setTheme(theme);
  let isChosen = false;  // by the reader: then the system has no say
  document.getElementById("theme-button").addEventListener("click", () => {
    isChosen = true;
    setTheme(theme === "dark" ? "light" : "dark");
  });
  systemTheme.addEventListener("change", (event) => {
    if (!isChosen) setTheme(event.matches ? "dark" : "light");
  });
  let onScreen = theme;
  addEventListener("beforeprint", () => { onScreen = theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(onScreen));
}
