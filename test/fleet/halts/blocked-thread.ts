/**
 * Loaded before a thread: blocks it when a message arrives on the channel `block`, and reports that on
 * `blocked`.
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
