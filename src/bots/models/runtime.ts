/**
 * ONNX Runtime as WebAssembly: the same numbers on every processor, where the native one picks its
 * kernels by what it finds. It is an optional package, loaded when a bot with models is.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as Onnx from 'onnxruntime-web';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { Model } from './model.ts';

/** A model at work. One row at a time: nothing promises that rows together give the same bits. */
export interface RunningModel {
  /** A number for each output of the spec; NaN for what is none. @throws ServiceError `failure` */
  readonly run: (row: readonly number[]) => Promise<readonly number[]>;
  readonly close: () => Promise<void>;
}

const PACKAGE = 'onnxruntime-web';
/** Of all models of a thread together, in pages of 64 KiB: 512 MiB. */
const MOST_PAGES = 8192;
/** For a row; models of bars take less than a thousandth of it. */
const SLOWEST_MS = 2000;
/** Rows may take longer: it may be the machine that had stopped. */
const MOST_LATE = 2;

const require = createRequire(import.meta.url);
let loading: Promise<typeof Onnx> | undefined;

/** Name and version of what computes models. @throws ServiceError `failure` when it is not installed. */
export function modelRuntime(): string {
  try {
    const manifest = join(dirname(require.resolve(PACKAGE)), '..', 'package.json');
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string };
    return `${PACKAGE} ${version}`;
  } catch (cause) {
    throw missing(cause);
  }
}

/**
 * Makes a model ready, and tries it once.
 * @throws ServiceError `invalid_spec` for a file that is no such model; `failure` without the package.
 */
export async function openModel(model: Model): Promise<RunningModel> {
  loading ??= load();
  const { Tensor, InferenceSession } = await loading.catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  const { name, bytes, input, from, outputs, inputs } = model;
  const dims = input.rank === 1 ? [inputs.length] : [1, inputs.length];
  const row = (values: readonly number[]): Onnx.Tensor =>
    input.type === 'float32'
      ? new Tensor('float32', Float32Array.from(values), dims)
      : new Tensor('float64', Float64Array.from(values), dims);

  let session: Onnx.InferenceSession | undefined;
  try {
    const opened = await InferenceSession.create(bytes, OPTIONS);
    session = opened;
    const begun = performance.now();
    const tried = await opened.run({ [input.name]: row(inputs.map(() => 0)) });
    const took = performance.now() - begun;
    // Nothing can interrupt it, and whatever else is in the thread waits for it.
    if (took > SLOWEST_MS) throw slow(took);
    for (const [at, { element }] of outputs.entries()) {
      const { type, size } = tried[from[at]!]!;
      if ((type === 'float32' || type === 'float64') && element < size) continue;
      throw new Error(`its output ${from[at]} is ${size} of ${type}`);
    }
  } catch (error) {
    await session?.release();
    throw broken(name, error);
  }
  const running = session;
  let late = 0;
  return {
    async run(values) {
      try {
        const begun = performance.now();
        const said = await running.run({ [input.name]: row(values) });
        const took = performance.now() - begun;
        if (took > SLOWEST_MS) late += 1;
        if (late > MOST_LATE) throw slow(took);
        return outputs.map(({ element }, at) => {
          const value = Number(said[from[at]!]!.data[element]);
          return Number.isFinite(value) ? value : Number.NaN;
        });
      } catch (error) {
        throw broken(name, error);
      }
    },
    close: () => running.release(),
  };
}

function slow(ms: number): Error {
  return new Error(`one row took ${Math.round(ms)} ms`);
}

const OPTIONS: Onnx.InferenceSession.SessionOptions = {
  executionProviders: ['wasm'],
  // The graph as it stands: what optimizers make of one is another from version to version.
  graphOptimizationLevel: 'disabled',
  // What goes wrong is told by what is thrown.
  logSeverityLevel: 4,
};

async function load(): Promise<typeof Onnx> {
  try {
    const onnx = await import('onnxruntime-web');
    onnx.env.wasm.numThreads = 1;
    onnx.env.logLevel = 'fatal';
    // Its memory comes with the first model, also with one that is none.
    const first = () => onnx.InferenceSession.create(new Uint8Array(), OPTIONS);
    await withLessMemory(() => first().catch(() => {}));
    return onnx;
  } catch (cause) {
    throw missing(cause);
  }
}

/** It asks for up to 4 GiB, and takes them for a model that somebody made to that end. */
async function withLessMemory<T>(work: () => Promise<T>): Promise<T> {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = class extends Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      const { maximum = MOST_PAGES } = descriptor;
      super({ ...descriptor, maximum: Math.min(maximum, MOST_PAGES) });
    }
  };
  try {
    return await work();
  } finally {
    WebAssembly.Memory = Memory;
  }
}

function broken(name: string, error: unknown): ServiceError {
  // Names of the file are in it.
  const why = printableLine(error instanceof Error ? error.message : String(error)).trim();
  return new ServiceError('invalid_spec', `the model ${name} cannot be run: ${shortened(why)}`, {
    reason: 'invalid_model',
    remedy: 'Try it in ONNX Runtime with a row of zeros, and export it anew.',
    cause: error,
  });
}

/** What is wrong stands at the end, behind where in the runtime it was found. */
function shortened(why: string): string {
  return why.length <= 600 ? why : `${why.slice(0, 200)} … ${why.slice(-400)}`;
}

function missing(cause: unknown): ServiceError {
  return new ServiceError('failure', `models need the package ${PACKAGE}`, {
    reason: 'package_missing',
    remedy: `Install it beside this one: \`npm install ${PACKAGE}\`.`,
    cause,
  });
}
