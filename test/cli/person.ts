import { PassThrough } from 'node:stream';

/** A question, or part of it, and what to type when it appears: keys, or what follows from all that has been shown. */
type Answer = readonly [question: string, keys: string | ((shown: string) => string)];

/** A terminal whose user types each answer when its question appears, one after the other. */
export function personWho(answers: readonly Answer[]) {
  const stdin = new PassThrough();
  // A prompt ends the stream it wrote to, which does nothing to the real one.
  const stderr = Object.assign(new PassThrough(), { end: () => stderr });
  let next = 0;
  let shown = '';
  stderr.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
    const [question, keys] = answers[next] ?? [];
    if (question === undefined || !chunk.includes(question)) return;
    next += 1;
    // The prompt listens once it has drawn itself.
    setImmediate(() => stdin.write(typeof keys === 'function' ? keys(shown) : keys!));
  });
  return { stdin, stderr, asked: () => next, shown: () => shown };
}
