// main.js: the run, by the index alone.
const index = JSON.parse(document.getElementById("weir-index").textContent);
const heading = document.createElement("h1");
heading.textContent = index.run.command || "Weir";
document.title = heading.textContent;
document.getElementById("page").append(heading);
