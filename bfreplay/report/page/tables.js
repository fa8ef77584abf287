// Tables that sort by their header buttons; long ones are paged and can be searched.
"use strict";

function compareValues(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");  // what is missing comes last, both ways
  const x = Number(a);
  const y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", {numeric: true}) : x - y;
}

function sortedRows(rows, column, direction, valueOf) {
  const keyed = rows.map((row, position) => ({row, position, value: valueOf(row, column)}));
  keyed.sort((a, b) => {
    const order = compareValues(a.value, b.value);
    const signed = a.value === "" || b.value === "" ? order : direction * order;
    return signed || a.position - b.position;
  });
  return keyed.map((each) => each.row);
}

class SortableTable {
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.headers = [...table.tHead.rows[0].cells];
    this.headers.forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => this.sort(column));
    });
  }

  sort(column) {
    const header = this.headers[column];
    const isNumber = header.classList.contains("number");
    const now = header.getAttribute("aria-sort");
    // numbers are looked at from the largest down
    const next = now === null ? (isNumber ? "descending" : "ascending") : now === "ascending" ? "descending" : "ascending";
    this.headers.forEach((each) => each.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", next);
    this.reorder(column, next === "ascending" ? 1 : -1);
  }

  reorder(column, direction) {
    const rows = [...this.body.rows];
    this.body.append(...sortedRows(rows, column, direction, (row, k) => row.cells[k].dataset.value));
  }
}

class PagedTable extends SortableTable {
  constructor(table, rows) {
    super(table);
    this.all = rows;
    this.pageRows = this.body.rows.length;  // as many as the page came with
    this.shown = rows;
    this.page = 0;
    this.controls = this.makeControls();
    table.parentElement.before(this.controls);
    this.draw();
  }

  makeControls() {
    const controls = document.createElement("div");
    controls.className = "table-controls";
    const label = document.createElement("label");
    label.textContent = "Search ";
    this.search = document.createElement("input");
    this.search.type = "search";
    this.search.setAttribute("aria-controls", this.table.id);
    this.search.addEventListener("input", () => this.filter());
    label.append(this.search);
    this.before = this.button("Previous rows", "◀", () => this.turn(-1));
    this.after = this.button("Next rows", "▶", () => this.turn(1));
    this.where = document.createElement("span");
    this.where.setAttribute("role", "status");
    controls.append(label, this.before, this.where, this.after);
    return controls;
  }

  button(words, sign, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = sign;
    button.setAttribute("aria-label", words);
    button.addEventListener("click", act);
    return button;
  }

  turn(by) {
    this.page += by;
    this.draw();
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    this.shown = this.all.filter((row) => row.some((cell) => cell[1].toLowerCase().includes(wanted)));
    this.page = 0;
    this.draw();
  }

  reorder(column, direction) {
    this.all = sortedRows(this.all, column, direction, (row, k) => row[k][0]);
    this.filter();
  }

  draw() {
    const begin = this.page * this.pageRows;
    const end = Math.min(begin + this.pageRows, this.shown.length);
    this.body.replaceChildren(...this.shown.slice(begin, end).map((row) => this.row(row)));
    const number = (n) => n.toLocaleString("en-US");
    this.where.textContent = this.shown.length
      ? `rows ${number(begin + 1)} to ${number(end)} of ${number(this.shown.length)}` : "no such row";
    this.before.disabled = begin === 0;
    this.after.disabled = end === this.shown.length;
  }

  row(cells) {
    const row = document.createElement("tr");
    cells.forEach(([value, text], column) => {
      const cell = document.createElement(column === 0 ? "th" : "td");
      if (column === 0) cell.scope = "row";
      if (this.headers[column].classList.contains("number")) cell.className = "number";
      cell.dataset.value = value;
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  }
}

async function startTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.dataset.rest) {
      const rows = await unpackedDocument(document.getElementById(table.dataset.rest).textContent);
      new PagedTable(table, rows);
    } else {
      new SortableTable(table);
    }
  }
}
