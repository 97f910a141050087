// Clock of the replay. Seconds for runs; numbers of stances for plans. Nodes of a search tree
// come after the last stance; playing never reaches them.
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4], FRAME = data.stances ? 0.0625 : 1 / 30;
const clock = {t: 0, playing: data.duration > 0, speed: 1, loop: true, steps: false, before: null, waited: 0};
const listeners = [];
function whenTimeChanges(listener) { listeners.push(listener); }
function place(t) {
  clock.t = t;
  for (const action of viewer.animator.actions) {
    action.paused = false;
    action.enabled = true;
    action.play();
    action.time = clamp(t, 0, action._clip.duration);
  }
  viewer.animator.mixer.update(0);
  viewer.set_dirty();
}
function inTree() { return clock.t > data.duration + 1; }
function changed(jumped) { light(); follow(); for (const listener of listeners) listener(clock.t, jumped); }
function jump(t) { place(t); changed(true); }
function seek(t) { jump(clamp(t, 0, data.duration)); }
function pause() { clock.playing = false; changed(false); }
function play() {
  if (inTree() || clock.t > data.duration - 1e-6) place(0);
  clock.playing = data.duration > 0;
  clock.before = null;
  clock.waited = 0;
  changed(true);
}
function toggle() { if (clock.playing) pause(); else play(); }
function stepFrame(by) { pause(); seek(inTree() ? 0 : clock.t + by * FRAME); }
function bandIndex(t) {
  const k = data.bands.findIndex(band => t >= band.begin - 1e-9 && t < band.end - 1e-9);
  return k < 0 ? data.bands.length - 1 : k;
}
function stepBand(by) {
  pause();
  if (data.stances) { seek(inTree() ? 0 : Math.round(clock.t) + by); return; }
  if (!data.bands.length) return;
  const k = bandIndex(clock.t), band = data.bands[k];
  // back goes to the beginning of this phase first, as players of music do
  const to = by > 0 ? k + 1 : clock.t > band.begin + 0.15 ? k : k - 1;
  seek(to >= data.bands.length ? data.duration : data.bands[Math.max(to, 0)].begin);
}
function setSpeed(by) { clock.speed = SPEEDS[clamp(SPEEDS.indexOf(clock.speed) + by, 0, SPEEDS.length - 1)]; changed(false); }
// Stances are as far apart as their motions take: the time line counts them, the clock counts seconds.
function between(x, from, to) {
  const above = from.findIndex(edge => edge > x), k = above < 0 ? from.length - 1 : Math.max(above, 1);
  return to[k - 1] + (to[k] - to[k - 1]) * (x - from[k - 1]) / (from[k] - from[k - 1]);
}
const numbered = data.seconds.map((_, k) => k);
function later(t, passed) {
  if (data.seconds.length < 2) return t + passed;
  const end = data.seconds[data.seconds.length - 1], second = between(t, numbered, data.seconds) + passed;
  return second >= end ? data.duration : between(second, data.seconds, numbered);
}
function advance(stamp) {
  const passed = clock.before === null ? 0 : clamp((stamp - clock.before) / 1000, 0, 0.25) * clock.speed;
  clock.before = stamp;
  if (!clock.playing) return;
  let t = later(clock.t, passed);
  if (clock.steps) {  // one stance after the other
    clock.waited += passed;
    if (clock.waited < 1) return;
    clock.waited = 0;
    t = clock.t >= data.duration ? data.duration + 1 : Math.round(clock.t) + 1;
  }
  if (t < data.duration) place(t);
  else if (clock.loop) place(clock.t < data.duration ? data.duration : 0);
  else { place(data.duration); clock.playing = false; }
  changed(false);
}
// meshcat's own panel uses the same clock
viewer.animator.pause = pause;
viewer.animator.play = play;
viewer.animator.seek = jump;
viewer.animator.update = () => {};
