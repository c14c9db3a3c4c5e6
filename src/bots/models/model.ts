import { createHash } from 'node:crypto';
import type { Feature } from './features.ts';
import { readOnnx, type OnnxModel, type OnnxValue } from './onnx.ts';

/** See `ml_models` of the spec. */
export interface ModelSpec {
  readonly name: string;
  /** Path of the ONNX file, relative to the spec. */
  readonly path: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
  /** Numbers of the input row, in order. */
  readonly inputs: readonly Feature[];
  readonly outputs: readonly ModelOutput[];
}

export interface ModelOutput {
  /** Name of the signal in strategies, unique in a spec. */
  readonly name: string;
  /** Output of the ONNX graph. Required if there are several. */
  readonly from?: string | undefined;
  /** Index of the number in the output, from 0. */
  readonly element: number;
}

export interface Model extends ModelSpec {
  readonly bytes: Uint8Array;
  /** Input of the ONNX graph that takes the row. */
  readonly input: {
    readonly name: string;
    readonly type: 'float32' | 'float64';
    readonly rank: 1 | 2;
  };
  /** Output of the ONNX graph for each of `outputs`. */
  readonly from: readonly string[];
}

export interface ModelFault {
  /** Path in the model's entry of the spec. */
  readonly at: readonly (string | number)[];
  readonly code: 'digest_mismatch' | 'file_too_large' | 'invalid_model' | 'model_mismatch';
  readonly message: string;
  readonly suggestion?: string;
}

/** Size of one file. Models of single bars are much smaller. */
export const MOST_MODEL_BYTES = 16 * 1024 * 1024;
const MOST_NODES = 2000;

/**
 * Allowed operators: deterministic, with a running time bounded by the size of their inputs. There
 * are no random numbers, no loops and no operators that produce large outputs from small inputs.
 */
const OPERATORS: ReadonlySet<string> = new Set(
  [
    'Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast CastLike Ceil Celu Clip Concat',
    'Constant Conv Cos CumSum Div Einsum Elu Equal Erf Exp Flatten Floor Gather GatherElements',
    'Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GRU HardSigmoid HardSwish',
    'Identity InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LSTM',
    'MatMul Max MaxPool Mean Min Mish Mul Neg Not Or PRelu Pow QuantizeLinear DequantizeLinear',
    'Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum',
    'ReduceSumSquare Relu Reshape RNN Round Selu Shape Sigmoid Sign Sin Slice Softmax Softplus',
    'Softsign Split Sqrt Squeeze Sub Sum Swish Tanh ThresholdedRelu Transpose Unsqueeze Where Xor',
    'ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.FeatureVectorizer',
    'ai.onnx.ml.Imputer ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor ai.onnx.ml.Normalizer',
    'ai.onnx.ml.Scaler ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor',
    'ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor',
  ].flatMap((names) => names.split(' ')),
);

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

interface Content {
  readonly digest: string;
  readonly onnx: OnnxModel | undefined;
}

/** Several models may share one file. */
const contents = new WeakMap<Uint8Array, Content>();

function contentOf(bytes: Uint8Array): Content {
  const content = contents.get(bytes) ?? { digest: digestOf(bytes), onnx: readOnnx(bytes) };
  contents.set(bytes, content);
  return content;
}

/** Returns the model, or every fault of the file. Does not run it. */
export function readModel(spec: ModelSpec, bytes: Uint8Array): Model | readonly ModelFault[] {
  if (bytes.length > MOST_MODEL_BYTES) return [tooLarge(bytes.length)];
  const { digest, onnx } = contentOf(bytes);
  const changed: ModelFault[] = [];
  if (digest !== spec.digest) {
    const message = `digest does not match ${spec.path}`;
    changed.push({ at: ['digest'], code: 'digest_mismatch', message, suggestion: digest });
  }
  if (onnx === undefined) return [...changed, unusable('the file is not an ONNX model')];
  const input = inputOf(spec, onnx);
  const from = spec.outputs.map((output, at) => outputOf(output, at, onnx));
  const faults = [...changed, ...fileFaults(onnx), input, ...from].filter(isFault);
  if (faults.length > 0) return faults;
  return {
    ...spec,
    bytes,
    input: input as Model['input'],
    from: from.map((value) => (value as OnnxValue).name),
  };
}

export function tooLarge(size: number): ModelFault {
  const message = `the file has ${size} bytes; a model may have at most ${MOST_MODEL_BYTES}`;
  return { at: ['path'], code: 'file_too_large', message };
}

function fileFaults({ isInParts, isNested, operators, nodes }: OnnxModel): ModelFault[] {
  const others = operators.filter((name) => !OPERATORS.has(name));
  return [
    ...(isInParts
      ? [unusable('the model has weights in other files; save it as a single file')]
      : []),
    ...(isNested
      ? [unusable('the model has functions or nested graphs; save it with them inlined')]
      : []),
    ...(nodes > MOST_NODES
      ? [unusable(`the model has ${nodes} operators; at most ${MOST_NODES} are allowed`)]
      : []),
    ...(others.length > 0
      ? [
          unusable(
            `the model has operators that are not supported: ${others.slice(0, 10).join(', ')}`,
          ),
        ]
      : []),
  ];
}

function inputOf({ inputs }: ModelSpec, onnx: OnnxModel): Model['input'] | ModelFault {
  const mismatch = (message: string): ModelFault => ({
    at: ['inputs'],
    code: 'model_mismatch',
    message,
  });
  if (onnx.inputs.length !== 1) {
    return mismatch(
      `the model has ${onnx.inputs.length} inputs; it must have exactly one, a row of numbers`,
    );
  }
  const [{ name, type, dims }] = onnx.inputs as [OnnxValue];
  if (type === undefined || type === 'other') {
    return mismatch(`the input ${printable(name)} of the model must be of float32 or float64`);
  }
  const shape = dims === undefined ? 'no shape' : `the shape ${shapeOf(dims)}`;
  const width = dims?.at(-1);
  const isRow = dims?.length === 1 || (dims?.length === 2 && isOneOrAny(dims[0]!));
  if (!isRow || typeof width !== 'number') {
    return mismatch(
      `the input ${printable(name)} of the model has ${shape}; it must be [n] or [1, n], with n fixed`,
    );
  }
  if (width !== inputs.length) {
    return mismatch(`the model takes ${width} numbers, but ${inputs.length} inputs are listed`);
  }
  return { name, type, rank: dims.length === 1 ? 1 : 2 };
}

function outputOf(
  { from, element }: ModelOutput,
  at: number,
  { outputs }: OnnxModel,
): OnnxValue | ModelFault {
  const mismatch = (field: string | undefined, message: string): ModelFault => ({
    at: ['outputs', at, ...(field === undefined ? [] : [field])],
    code: 'model_mismatch',
    message,
  });
  const names = outputs.map(({ name }) => printable(name)).join(', ');
  if (from === undefined && outputs.length !== 1) {
    return mismatch(
      undefined,
      `the model has ${outputs.length} outputs; choose one with from: ${names}`,
    );
  }
  const found = from === undefined ? outputs[0]! : outputs.find(({ name }) => name === from);
  if (found === undefined)
    return mismatch('from', `the model has no such output; its outputs: ${names}`);
  const { name, type, dims } = found;
  const field = from === undefined ? undefined : 'from';
  if (type === undefined || type === 'other') {
    return mismatch(
      field,
      `the output ${printable(name)} of the model must be of float32 or float64`,
    );
  }
  if (dims === undefined) return found;
  const [first = 1, ...rest] = dims;
  const sizes = [isOneOrAny(first) ? 1 : first, ...rest];
  if (sizes.some((size) => typeof size !== 'number')) {
    const fixed = 'but all dimensions except the first must be fixed';
    return mismatch(
      field,
      `the output ${printable(name)} has the shape ${shapeOf(dims)}, ${fixed}`,
    );
  }
  const count = sizes.reduce<number>((product, size) => product * Number(size), 1);
  if (element < count) return found;
  const has = `the output ${printable(name)} of the model has ${count} numbers, so element must be below ${count}`;
  return mismatch('element', has);
}

/** Whether the dimension can be 1: a model for batches gets a single row. */
function isOneOrAny(dim: number | string): boolean {
  return dim === 1 || typeof dim === 'string';
}

function shapeOf(dims: readonly (number | string)[]): string {
  return `[${dims.map((dim) => (typeof dim === 'number' ? dim : printable(dim) || '?')).join(', ')}]`;
}

/** Names in a file are untrusted, so only printable ASCII is shown. */
function printable(name: string): string {
  return name.replaceAll(/[^!-~]/g, '?').slice(0, 100);
}

function unusable(message: string): ModelFault {
  return { at: ['path'], code: 'invalid_model', message };
}

function isFault(value: object): value is ModelFault {
  return 'code' in value && 'at' in value;
}
