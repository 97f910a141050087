// Start of the page, and the loop that keeps it up to date.
buildLegend();
for (const item of Object.values(layers)) item.apply(item.on);
const roomy = innerWidth > 800 && innerHeight > 560, hasBands = data.bands.length > 0;
if (roomy && (hasBands || data.certificate || data.tree)) setPanel("facts", true);
if (roomy && innerHeight > 700 && strips.length) setPanel("strips", true);
if (roomy && innerWidth > 1600) setPanel("legend", true);
addEventListener("resize", () => { align(); makeRoom(); });
// an address that ends in #t=3.5 opens at that time, at rest
const wanted = /^#t=([0-9]+(?:\.[0-9]+)?)$/.exec(location.hash);
if (wanted) clock.playing = false;
jump(wanted ? clamp(Number(wanted[1]), 0, data.duration) : 0);
align();
makeRoom();
lookFrom("home");
let eye = "";
(function refresh(stamp) {
  advance(stamp ?? performance.now());
  const e = viewer.camera.matrixWorld.elements.map(x => x.toFixed(4)).join();
  if (e !== eye || clock.playing) { eye = e; fade(); drawLabels(); }
  requestAnimationFrame(refresh);
})();
whenTimeChanges(drawLabels);
