/* start.js - the last file: reads the data and shows what it is. */
"use strict";

(function start() {
  const data = JSON.parse(document.getElementById("data").textContent), page = document.getElementById("page");
  startTheme();
  if (data.kind === "compare") showCompare(data, page);
  else if (data.kind === "probe") showProbe(data, page);
  else showReport(data, page);
})();
