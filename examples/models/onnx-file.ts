/**
 * Writes ONNX files. It encodes the few protocol buffer fields that a small model needs itself.
 *
 * @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */

/** A tensor of float32. */
export interface Weights {
  readonly name: string;
  readonly dims: readonly number[];
  readonly values: readonly number[];
}

export interface Value {
  readonly name: string;
  /** Sizes; a name stands for an open dimension. */
  readonly dims: readonly (number | string)[];
  /** A value of `TensorProto.DataType`; by default 1, float32. */
  readonly type?: number;
}

export interface Node {
  readonly operator: string;
  /** Domain of the operator; by default that of ONNX. */
  readonly domain?: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

export interface Graph {
  /** In topological order. */
  readonly nodes: readonly Node[];
  readonly weights: readonly Weights[];
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
}

const IR_VERSION = 8;
const OPSET = 17;
const FLOAT = 1;

export function onnxFile({ nodes, weights, inputs, outputs }: Graph): Uint8Array {
  const graph = [
    ...nodes.map((node) => part(1, nodeOf(node))),
    text(2, 'graph'),
    ...weights.map((one) => part(5, tensorOf(one))),
    ...inputs.map((one) => part(11, valueOf(one))),
    ...outputs.map((one) => part(12, valueOf(one))),
  ];
  const opset = [text(1, ''), number(2, OPSET)];
  return Buffer.concat([number(1, IR_VERSION), part(7, graph), part(8, opset)]);
}

function nodeOf({ operator, domain = '', inputs, outputs }: Node): Uint8Array[] {
  return [
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, operator),
    text(7, domain),
  ];
}

function tensorOf({ name, dims, values }: Weights): Uint8Array[] {
  const data = Buffer.alloc(4 * values.length);
  for (const [place, value] of values.entries()) data.writeFloatLE(value, 4 * place);
  return [...dims.map((dim) => number(1, dim)), number(2, FLOAT), text(8, name), part(9, [data])];
}

function valueOf({ name, dims, type = FLOAT }: Value): Uint8Array[] {
  const shape = dims.map((dim) =>
    part(1, [typeof dim === 'number' ? number(1, dim) : text(2, dim)]),
  );
  return [text(1, name), part(2, [part(1, [number(1, type), part(2, shape)])])];
}

/** A length-delimited field: text, packed numbers or a nested message. */
function part(field: number, content: readonly Uint8Array[]): Uint8Array {
  const bytes = Buffer.concat(content);
  return Buffer.concat([varint(8 * field + 2), varint(bytes.length), bytes]);
}

function text(field: number, value: string): Uint8Array {
  return part(field, [Buffer.from(value)]);
}

function number(field: number, value: number): Uint8Array {
  return Buffer.concat([varint(8 * field), varint(value)]);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Uint8Array.from([...bytes, left]);
}
