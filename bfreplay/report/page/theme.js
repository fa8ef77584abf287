// Light and dark: the reader's choice, at first that of the system; paper is always light.
"use strict";

const palettes = JSON.parse(document.getElementById("palettes").textContent);
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
let theme = systemTheme.matches ? "dark" : "light";
const whenThemed = [];

function colour(name) {
  return palettes[theme][name];
}

// "@name" anywhere in a document becomes the colour of that name.
function coloured(value) {
  if (typeof value === "string") return value.startsWith("@") ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map(coloured);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coloured(each)]));
}

function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light theme" : "Dark theme";
  whenThemed.forEach((redraw) => redraw());
}

function startTheme() {
  setTheme(theme);
  document.getElementById("theme").addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark"));
  systemTheme.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  let onScreen = theme;
  addEventListener("beforeprint", () => { onScreen = theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(onScreen));
}
