// Packed numbers and documents: base64 of zlib of little-endian arrays (packed.py is the other end).
"use strict";

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const ARRAYS = {uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float64: Float64Array};

async function unpackedNumbers(packed) {
  return new ARRAYS[packed.type](await inflated(packed.zlib));
}

async function unpackedDocument(text) {
  return JSON.parse(new TextDecoder().decode(await inflated(text)));
}

// A step function: edge (T + 1) in seconds since the start of the window; least, mean, most (T).
async function unpackedSteps(packed) {
  const [length, mean] = await Promise.all([unpackedNumbers(packed.length), unpackedNumbers(packed.mean)]);
  const exact = packed.least === undefined;
  const least = exact ? mean : await unpackedNumbers(packed.least);
  const most = exact ? mean : await unpackedNumbers(packed.most);
  const edge = new Float64Array(length.length + 1);
  let units = 0;  // whole, so that nothing is lost on the way
  edge[0] = packed.start_s;
  for (let k = 0; k < length.length; k += 1) {
    units += length[k];
    edge[k + 1] = packed.start_s + units * packed.unit_s;
  }
  return {edge, least, mean, most};
}
