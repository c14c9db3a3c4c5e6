/**
 * Runs models in the WebAssembly build of ONNX Runtime, which gives the same numbers on every
 * processor; the native build chooses its kernels by processor. The package is optional and loaded
 * with the first model.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as Onnx from 'onnxruntime-web';
import { ServiceError } from '../../base/errors.ts';
import { printableLine } from '../../base/printable.ts';
import type { Model } from './model.ts';

/** Takes one row at a time, because a batch need not give bit-identical results. */
export interface RunningModel {
  /** Returns a number for each output of the spec, NaN if not finite. @throws as `openModel` */
  readonly run: (row: readonly number[]) => Promise<readonly number[]>;
  readonly close: () => Promise<void>;
}

const PACKAGE = 'onnxruntime-web';
/** Memory of all models in a thread, in pages of 64 KiB: 512 MiB. */
const MOST_PAGES = 8192;
/** Limit for one row, over a thousand times what a typical model needs. */
const SLOWEST_MS = 2000;
/** Slow rows that are tolerated, because the machine may have been suspended. */
const MOST_LATE = 2;

const require = createRequire(import.meta.url);
let loading: Promise<typeof Onnx> | undefined;

/** Name and version of the runtime package. @throws ServiceError `failure` if it is not installed. */
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
 * Loads a model and runs it once with a row of zeros.
 * @throws ServiceError `invalid_spec` if the model fails; `failure` if the package is not installed.
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
    const trial = await opened.run({ [input.name]: row(inputs.map(() => 0)) });
    const elapsed = performance.now() - begun;
    // A run cannot be interrupted and blocks its thread.
    if (elapsed > SLOWEST_MS) throw slow(elapsed);
    for (const [at, { element }] of outputs.entries()) {
      const { type, size } = trial[from[at]!]!;
      if ((type === 'float32' || type === 'float64') && element < size) continue;
      throw new Error(`the output ${from[at]} has ${size} numbers of type ${type}`);
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
        const results = await running.run({ [input.name]: row(values) });
        const elapsed = performance.now() - begun;
        if (elapsed > SLOWEST_MS) late += 1;
        if (late > MOST_LATE) throw slow(elapsed);
        return outputs.map(({ element }, at) => {
          const value = Number(results[from[at]!]!.data[element]);
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
  // Optimizers change between versions, and with them the results.
  graphOptimizationLevel: 'disabled',
  // Fatal messages only: faults are thrown.
  logSeverityLevel: 4,
};

async function load(): Promise<typeof Onnx> {
  try {
    const onnx = await import('onnxruntime-web');
    onnx.env.wasm.numThreads = 1;
    onnx.env.logLevel = 'fatal';
    // The runtime allocates its memory with the first model, even if that is invalid.
    const first = () => onnx.InferenceSession.create(new Uint8Array(), OPTIONS);
    await withLessMemory(() => first().catch(() => {}));
    return onnx;
  } catch (cause) {
    throw missing(cause);
  }
}

/** Caps the memory of the runtime, which a hostile model could grow to 4 GiB. */
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
  // The text can contain names from the file, which is untrusted.
  const why = printableLine(error instanceof Error ? error.message : String(error)).trim();
  return new ServiceError('invalid_spec', `the model ${name} cannot be run: ${shortened(why)}`, {
    reason: 'invalid_model',
    remedy: 'Run it in ONNX Runtime with a row of zeros to find the fault, then export it again.',
    cause: error,
  });
}

/** Keeps the end in full, because ONNX Runtime puts the cause last. */
function shortened(why: string): string {
  return why.length <= 600 ? why : `${why.slice(0, 200)} … ${why.slice(-400)}`;
}

function missing(cause: unknown): ServiceError {
  return new ServiceError(
    'failure',
    `the package ${PACKAGE}, which runs models, is not installed`,
    {
      reason: 'package_missing',
      remedy: `Install it next to service-local: \`npm install ${PACKAGE}\`.`,
      cause,
    },
  );
}
