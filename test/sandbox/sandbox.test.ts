import { expect, it, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { ServiceError } from '../../src/errors.ts';
import { explainStrategyError } from '../../src/engine/strategy-error.ts';
import { allocateBars } from '../../src/market/bars.ts';
import { readFirst, readOrdered } from '../../src/sandbox/messages.ts';
import { frameReader, type SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { CONFIG, open, STEPS, strategyThat } from './bundles.ts';

/** What comes of a strategy over three bars: its order events, and why it failed. */
async function outcomeOf(text: string, options: Partial<SandboxOptions> = {}) {
  let sandbox: Awaited<ReturnType<typeof open>>;
  try {
    sandbox = await open(text, options);
  } catch (error) {
    return { events: [], error };
  }
  const { strategy, take, close } = sandbox;
  const instruments = [{ symbol: 'A', bars: allocateBars(0) }];
  const engine = new Engine({ instruments, strategy, params: {}, config: CONFIG });
  let error: unknown;
  try {
    await take(STEPS);
    for (const step of STEPS) engine.append(step);
    engine.advance(3);
  } catch (caught) {
    const context = { strategy: 'own', done: engine.done, timeoutMs: 0 };
    error = explainStrategyError(caught, context);
  } finally {
    await close();
  }
  return { events: [...engine.result().journal.events()].map(({ kind }) => kind), error };
}

const failed = (message: RegExp) =>
  expect.objectContaining({ message: expect.stringMatching(message) });

test('what a strategy orders is ordered', async () => {
  const text = strategyThat('broker.target(instruments[0], 1)');
  expect(await outcomeOf(text)).toEqual({
    events: [
      'order.submitted',
      'order.filled',
      'order.submitted',
      'order.canceled',
      'order.submitted',
    ],
    error: undefined,
  });
});

const IMPORTED = ['fs', 'net', 'child_process', 'worker_threads', 'sqlite', 'v8', 'module', 'dns'];

it.concurrent.each(IMPORTED)('a strategy cannot import node:%s', async (name) => {
  const { error } = await outcomeOf(strategyThat('', `import * as it from 'node:${name}';`));
  expect(error).toEqual(failed(/cannot import 'node:/));
});

const HOSTILE: readonly (readonly [what: string, text: string, told: RegExp])[] = [
  ['reads a file', strategyThat('process.getBuiltinModule("fs")'), /process is not defined|undef/],
  ['imports a file', strategyThat('', 'import x from "/etc/passwd";'), /cannot import/],
  ['imports what was not sent', strategyThat('', 'import x from "./x.ts";'), /cannot import/],
  ['opens a socket', strategyThat('new WebSocket("ws://127.0.0.1")'), /WebSocket is not defined/],
  ['fetches', strategyThat('fetch("http://127.0.0.1")'), /fetch is not defined/],
  ['makes code', strategyThat('new Function("return 1")()'), /Code generation from strings/],
  ['ends its process', strategyThat('process.exit(0)'), /process is not defined/],
  ['throws', strategyThat('throw new Error("mine")'), /threw at bar 1 .*mine[^]*own\.ts/],
  [
    'throws when loaded',
    strategyThat('', 'throw new Error("mine");'),
    /while it was loaded: .*mine/,
  ],
  ['is no strategy', 'export default 7;', /no strategy as default export/],
  ['does not compile', 'export default {;', /own\.ts/],
  ['waits when loaded', strategyThat('', 'await new Promise(() => {});'), /own\.ts/],
  [
    'fills its heap',
    strategyThat('for (const x = [];;) x.push(new Array(1e4).fill(0.5))'),
    /256 MB/,
  ],
  [
    'fills buffers',
    strategyThat('for (const x = [];;) x.push(new Uint8Array(1e6).fill(1))'),
    /256 MB/,
  ],
  [
    'tells what it did not order',
    strategyThat('Object.prototype.toJSON = () => "forged"'),
    /told what no strategy can order/,
  ],
  [
    'tells more than anybody reads',
    strategyThat('Object.prototype.toJSON = () => "x".repeat(1e7)'),
    /told what no strategy can order/,
  ],
];

it.concurrent.each(HOSTILE)('a strategy that %s fails', async (_what, text, told) => {
  const { events, error } = await outcomeOf(text);
  expect(error).toBeInstanceOf(ServiceError);
  expect({ events, error }).toEqual({ events: [], error: failed(told) });
});

const LOOP = 'for (;;);';
const HANGING = [
  ['when loaded', strategyThat('', LOOP), /not loaded within 0.3 s/],
  ['when created', strategyThat('', '', LOOP), /did not come back from bar 1 within 0.3 s/],
  [
    'in a step',
    strategyThat(`try { ${LOOP} } finally { ${LOOP} }`),
    /did not come back from bar 1/,
  ],
] as const;

it.concurrent.each(HANGING)('a strategy that loops for ever %s is ended', async (_, text, told) => {
  const { error } = await outcomeOf(text, { timeoutMs: 300 });
  expect(error).toMatchObject({ code: 'strategy_timeout', message: expect.stringMatching(told) });
});

test('a process that does not even end itself is killed', async () => {
  // Outside of what the watchdog of the process minds.
  const text = strategyThat(
    'Object.defineProperty(Uint8Array.prototype, "length", { get() { for (;;); } })',
  );
  const { error } = await outcomeOf(text, { timeoutMs: 300 });
  expect(error).toBeInstanceOf(ServiceError);
});

test('megabytes that are printed go nowhere', async () => {
  const text = strategyThat('for (let i = 0; i < 100; i++) console.log("x".repeat(1e6));');
  expect(await outcomeOf(text)).toEqual({ events: [], error: undefined });
});

test('a process ends with whoever wanted it', async () => {
  const stop = new AbortController();
  const { take, close } = await open(strategyThat(LOOP), { signal: stop.signal });
  const taken = take(STEPS);
  stop.abort(new Error('enough'));
  await expect(taken).rejects.toThrow('enough');
  await close();
});

test('numbers and names that no strategy has are in no message', () => {
  const ordered = (text: string) => readOrdered(Buffer.from(`{"done":1,"commands":[${text}]}`));
  expect(ordered('[0,"target",0,0.5]')).toBeDefined();
  for (const forged of [
    '[0,"target",0,1e999]',
    '[0,"target",-1,1]',
    '[0.5,"target",0,1]',
    '[0,"order",0,{"side":"buy","quantity":1,"__proto__":{"x":1}}]',
    '[0,"order",0,{"side":"buy","quantity":null}]',
    '[0,"exit"]',
  ]) {
    expect(ordered(forged)).toBeUndefined();
  }
  const params = '{"__proto__":{"kind":"flag","default":true}}';
  const loaded = `{"loaded":{"name":"x","description":"","params":${params}}}`;
  expect(readFirst(Buffer.from(loaded))).toBeUndefined();
});

test('messages are put together from any pieces, and none is too long', () => {
  const message = (text: string) => {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  const read = frameReader();
  const bytes = Buffer.concat([message('one'), message(''), message('three')]);
  const frames = [...bytes].flatMap((byte) => read(Buffer.from([byte]))!);
  expect(frames.map(String)).toEqual(['one', '', 'three']);
  expect(frameReader()(Buffer.from([0, 0, 0, 1]))).toBeUndefined();
});
