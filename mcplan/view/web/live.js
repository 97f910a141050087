// The scene as it is simulated: frames come through a socket, and how far the simulation is.
background();
viewer.camera.updateProjectionMatrix();
lookHome(1);

const done = document.createElement("div");
done.className = "done";
get("bands").append(done);

function say(status) {
  get("time").textContent = status.t.toFixed(2) + " s, " + status.factor.toFixed(2) + " x real time";
  get("phase").textContent = status.phase;
  done.style.width = 100 * status.share + "%";
  if (status.ended) get("hint").textContent = status.ended;
}

// a message holds the length of its status (4 bytes), the status as JSON, and commands, each after its length
function take(buffer) {
  const view = new DataView(buffer), size = view.getUint32(0, true);
  say(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size))));
  for (let at = 4 + size; at < buffer.byteLength;) {
    const length = view.getUint32(at, true);
    viewer.handle_command_bytearray(new Uint8Array(buffer.slice(at + 4, at + 4 + length)));
    at += 4 + length;
  }
}

const socket = new WebSocket("ws://" + location.host + "/frames");
socket.binaryType = "arraybuffer";
socket.onmessage = message => take(message.data);
socket.onclose = () => { if (get("hint").textContent.startsWith("live")) get("hint").textContent = "the simulation has ended"; };
