import { PassThrough } from 'node:stream';

/** Part of a prompt, and the keys to type when it appears, or a function of all output so far. */
type Answer = readonly [question: string, keys: string | ((shown: string) => string)];

/** A terminal whose user types each answer when its prompt appears, one after the other. */
export function createTerminal(answers: readonly Answer[]) {
  const stdin = new PassThrough();
  // A prompt ends its output stream, which has no effect on a real terminal.
  const stderr = Object.assign(new PassThrough(), { end: () => stderr });
  let next = 0;
  let shown = '';
  stderr.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
    const [question, keys] = answers[next] ?? [];
    if (question === undefined || !chunk.includes(question)) return;
    next += 1;
    // A prompt accepts input only after it was drawn.
    setImmediate(() => stdin.write(typeof keys === 'function' ? keys(shown) : keys!));
  });
  return { stdin, stderr, asked: () => next, shown: () => shown };
}
