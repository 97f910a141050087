// The report: charts of the run, and times that jump to their moment in the replay.
const replay = document.querySelector("iframe"), charts = [];
function showAt(t) {
  for (const chart of charts) chart.draw(t);
  if (replay) replay.contentWindow.postMessage({seek: t}, "*");
}
if (data.readings) {
  for (const chart of data.readings.charts) {
    charts.push(makeChart(get("charts"), chart, data.readings.t, {
      height: 150, bands: data.bands, end: data.duration, axis: true, step: false, seek: showAt,
    }));
  }
}
for (const link of document.querySelectorAll("a.time")) {
  link.tabIndex = 0;
  link.onclick = () => {
    showAt(Number(link.dataset.t));
    if (replay) replay.scrollIntoView({behavior: "smooth", block: "center"});
  };
  link.onkeydown = event => { if (event.key === "Enter") link.onclick(); };
}
