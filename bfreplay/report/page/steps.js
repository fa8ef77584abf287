// What there is to see of a step function in the columns of a picture (step_series.py does the same).
"use strict";

// Index of the first edge above x.
function firstAbove(edge, x) {
  let low = 0;
  let high = edge.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edge[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}

// Edges of n columns of equal width.
function evenColumns(from, to, n) {
  return Array.from({length: n + 1}, (_, k) => (k === n ? to : from + ((to - from) * k) / n));
}

// Least, mean (weighted by time) and most in each column; edges ascend inside the window of the series.
function inColumns(series, columns) {
  const {edge, least, mean, most} = series;
  const last = edge.length - 2;
  const found = {edge: columns, least: [], mean: [], most: []};
  let k = Math.max(firstAbove(edge, columns[0]) - 1, 0);
  for (let column = 0; column + 1 < columns.length; column += 1) {
    const begin = columns[column];
    const end = columns[column + 1];
    while (k < last && edge[k + 1] <= begin) k += 1;
    let low = Infinity;
    let high = -Infinity;
    let held = 0;
    for (let step = k; step <= last && edge[step] < end; step += 1) {
      low = Math.min(low, least[step]);
      high = Math.max(high, most[step]);
      held += mean[step] * (Math.min(edge[step + 1], end) - Math.max(edge[step], begin));
    }
    found.least.push(low);
    found.mean.push(Math.min(Math.max(held / (end - begin), low), high));
    found.most.push(high);
  }
  return found;
}

// The part of a series between two times: its steps as they are where these are at most n, else n columns.
function columnsOf(series, begin, end, n) {
  const {edge, least, mean, most} = series;
  const last = edge.length - 2;
  const from = Math.max(begin, edge[0]);  // what is known may end before the window does
  const to = Math.min(end, edge[edge.length - 1]);
  if (from >= to) return {edge: [], least: [], mean: [], most: []};
  const first = Math.min(Math.max(firstAbove(edge, from) - 1, 0), last);
  let stop = first;
  while (stop < last && edge[stop + 1] < to) stop += 1;
  if (stop - first + 1 > n) return inColumns(series, evenColumns(from, to, n));
  const part = (values) => Array.from(values.slice(first, stop + 1));
  const inside = Array.from(edge.slice(first + 1, stop + 1));
  return {edge: [Math.max(edge[first], from), ...inside, Math.min(edge[stop + 1], to)],
          least: part(least), mean: part(mean), most: part(most)};
}

// Which height lasts longest in each column, 0 aside; 0 where there is no other.
function longestInColumns({edge, mean}, columns) {
  let k = Math.max(firstAbove(edge, columns[0]) - 1, 0);
  return columns.slice(1).map((end, column) => {
    while (k + 1 < mean.length && edge[k + 1] <= columns[column]) k += 1;
    let [longest, height] = [0, 0];
    for (let step = k; step < mean.length && edge[step] < end; step += 1) {
      const length = Math.min(edge[step + 1], end) - Math.max(edge[step], columns[column]);
      if (mean[step] && length > longest) [longest, height] = [length, mean[step]];
    }
    return height;
  });
}
