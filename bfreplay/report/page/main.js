// Starts what needs no pictures while the script that draws them is still being read.
"use strict";

// What fails is said where the reader sees it, not in the console alone.
function started(what, start) {
  return start().catch((error) => {
    const note = document.getElementById("trouble-note");
    note.hidden = false;
    note.textContent = `${what} of this page could not be shown: ${error.message}. It needs a browser of 2023 or later.`;
    throw error;
  });
}

startTheme();
startTimeView();
started("Tables", startTables);
