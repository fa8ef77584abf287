// Figures, drawn by Plotly: colours by theme, step functions as fine as what is looked at allows.
"use strict";

const hasFinger = matchMedia("(pointer: coarse)").matches;  // a drag there scrolls the page
const CONFIG = {
  responsive: true, displaylogo: false, displayModeBar: hasFinger ? false : "hover",
  // a list of what there is, so that no release of Plotly adds a button that sends the figure somewhere
  modeBarButtons: [["toImage"]], showSendToCloud: false, plotlyServerURL: "",
};

// Of a row that jobs share, one after another: which is there in each column.
function jobsInColumns({job, since_s: since}, edges) {
  return edges.slice(1).map((end, column) => {
    const first = Math.max(firstAbove(since, edges[column]) - 1, 0);
    let last = first;
    while (last + 1 < since.length && since[last + 1] < end) last += 1;
    return last === first ? job[first] : `${job[first]} to ${job[last]} (${last - first + 1} jobs)`;
  });
}

// Of a row: on nodes of which type a job was in each column, and whether it shared them.
function placesInColumns({place, since_s: since}, edges) {
  return edges.slice(1).map((end, column) => {
    const first = Math.max(firstAbove(since, edges[column]) - 1, 0);
    const seen = new Set();
    for (let k = first; k < since.length && (k === first || since[k] < end); k += 1) seen.add(place[k]);
    return [...seen].join(" or ");
  });
}

class PageFigure {
  constructor(frame, document_) {
    this.frame = frame;
    this.document = document_;
    this.series = null;
    this.isDrawn = false;
    this.timeAxes = Object.keys(document_.layout).filter((key) => document_.layout[key].time);
  }

  async unpack() {
    const names = Object.keys(this.document.series);
    const unpacked = await Promise.all(names.map((name) => unpackedSteps(this.document.series[name])));
    this.series = Object.fromEntries(names.map((name, k) => [name, unpacked[k]]));
  }

  draw() {
    const config = {...CONFIG, doubleClick: this.timeAxes.length ? false : "reset"};
    const now = [this.frame, this.traces(), this.layout(), config];
    if (this.isDrawn) return Plotly.react(...now);
    this.isDrawn = true;
    const drawn = Plotly.newPlot(...now);
    if (this.timeAxes.length) {
      this.frame.on("plotly_relayout", (change) => this.moved(change));
      this.frame.on("plotly_doubleclick", () => MOVES.whole());
    }
    return drawn;
  }

  // As many columns as there is room for.
  columns() {
    return Math.max(100, Math.min(1200, Math.round(this.frame.clientWidth * 0.8)));
  }

  traces() {
    return this.document.traces.map((trace) => {
      const {steps, rows, holders, ...plain} = trace;
      const drawn = coloured(plain);
      if (steps !== undefined) {
        const found = columnsOf(this.series[steps.series], view.from, view.to, this.columns());
        const height = found[steps.statistic];
        drawn.x = found.edge.map(toAxis);
        drawn.y = [...height, ...height.slice(-1)];
      }
      if (holders !== undefined) {
        const edges = evenColumns(view.from, view.to, this.columns());
        const number = rows.map((name) => longestInColumns(this.series[name], edges));
        drawn.x = edges.map(toAxis);
        drawn.z = number.map((row) => row.map((each) => (each ? (each - 1) % trace.meta.colours : null)));
        drawn.text = number.map((row) => row.map((each) => (each ? holders[each - 1] : "")));
      } else if (rows !== undefined) {
        const edges = evenColumns(view.from, view.to, Math.min(600, this.columns()));
        drawn.x = edges.map(toAxis);
        drawn.z = rows.map((name) => inColumns(this.series[name], edges).mean.map((mean) => mean || null));
        const {row_jobs: jobs, row_places: places} = trace.meta ?? {};
        const who = jobs?.map((each) => jobsInColumns(each, edges));
        const where = places?.map((each) => placesInColumns(each, edges));
        if (who !== undefined || where !== undefined) {
          const [name, of] = [who === undefined ? "%{y}" : "%{text}", where === undefined ? "" : "%{text}"];
          drawn.text = who ?? where;
          if (who !== undefined && where !== undefined) {
            drawn.text = who.map((row, k) => row.map((job, column) => `${job}<br>on ${where[k][column]}`));
          }
          const on = who === undefined ? `<br>on ${of}` : "";
          drawn.hovertemplate = `${name}<br>nodes held: %{z:,.4~g}${on}<extra></extra>`;
        }
      }
      return drawn;
    });
  }

  layout() {
    const given = coloured(this.document.layout);
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: this.document.height,
      font: {family: "system-ui, sans-serif", size: 13, color: colour("ink")},
      margin: {l: 64, r: 16, t: 12, b: this.hasLegend() ? 84 : 56}, hovermode: "closest", dragmode: hasFinger ? false : "zoom",
      hoverlabel: {bgcolor: colour("panel"), bordercolor: colour("rule"), font: {color: colour("ink")}},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("accent")},
      ...given,
    };
    layout.legend = {orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", ...given.legend};
    for (const key of Object.keys(layout).filter((each) => /^[xy]axis\d*$/.test(each))) {
      const {time, ...axis} = layout[key];
      layout[key] = {
        gridcolor: colour("grid"), linecolor: colour("rule"), zerolinecolor: colour("rule"), automargin: true,
        ...(time ? this.timeAxis() : key.startsWith("x") ? this.ticks(axis) : {}), ...axis,
        ...(this.timeAxes.length && key.startsWith("y") ? {fixedrange: axis.fixedrange ?? true} : {}),
      };
    }
    return layout;
  }

  // Plotly shows one for two traces or more, heat maps aside.
  hasLegend() {
    const {traces, layout} = this.document;
    const named = traces.filter((trace) => trace.showlegend !== false && trace.type !== "heatmap");
    return layout.showlegend !== false && named.length > 1;
  }

  // Plotly would choose angle and number anew after each change of the margins, which follow from them: without end.
  ticks({ticktext: texts}) {
    const width = this.frame.clientWidth;
    if (texts === undefined) return {tickangle: 0, nticks: Math.max(3, Math.floor(width / 90))};
    const needed = texts.length * (8 * Math.max(...texts.map((each) => each.length)) + 8);
    return {tickangle: needed > width - 80 ? -45 : 0};
  }

  timeAxis() {
    const isDate = timeAxis.start_ms !== null;
    return {
      type: isDate ? "date" : "linear", range: [toAxis(view.from), toAxis(view.to)], autorange: false,
      tickangle: 0, nticks: Math.max(3, Math.floor(this.frame.clientWidth / 120)),
      title: {text: isDate ? "time (UTC)" : `${timeAxis.unit} since the start of the window`},
    };
  }

  moved(change) {
    for (const axis of this.timeAxes) {
      const range = change[`${axis}.range`] ?? [change[`${axis}.range[0]`], change[`${axis}.range[1]`]];
      if (range[0] !== undefined && range[1] !== undefined) {
        setView(fromAxis(range[0]), fromAxis(range[1]));
        return;
      }
    }
  }
}

const pageFigures = [];

async function startFigures() {
  const documents = JSON.parse(document.getElementById("data-figures").textContent);
  for (const [name, each] of Object.entries(documents)) {
    pageFigures.push(new PageFigure(document.getElementById(`plot-${name}`), each));
  }
  const redraw = (figures) => figures.filter((figure) => figure.isDrawn).forEach((figure) => figure.draw());
  whenThemed.push(() => redraw(pageFigures));
  whenMoved.push(() => redraw(pageFigures.filter((figure) => figure.timeAxes.length)));
  let soon;
  addEventListener("resize", () => {  // ticks and columns by the new width, after Plotly has taken it
    clearTimeout(soon);
    soon = setTimeout(redraw, 300, pageFigures);
  });
  for (const figure of pageFigures) {
    await figure.unpack();
    await figure.draw();
    document.documentElement.dataset.ready = "";  // the first is there to be used; the others follow
    await new Promise((resume) => setTimeout(resume));
  }
  document.documentElement.dataset.complete = "";
}

started("Pictures", startFigures);
