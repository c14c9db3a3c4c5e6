/**
 * Loaded before a thread: blocks it, whatever it is at, when it is told to on the channel `block`, and
 * says so on `blocked`.
 */
const tell = new BroadcastChannel('blocked');
const asked = new BroadcastChannel('block');
asked.addEventListener('message', () => {
  tell.postMessage('blocked');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
// Node's, of which the types for browsers know nothing.
(asked as unknown as { readonly unref: () => void }).unref();
(tell as unknown as { readonly unref: () => void }).unref();
