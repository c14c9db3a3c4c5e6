/**
 * Reads the few protocol buffer fields of an ONNX file that are checked before it is run. The file is
 * untrusted.
 *
 * @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */

export interface OnnxModel {
  /** Excludes inputs that have an initializer. */
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Sorted and unique; `domain.Operator` outside the default domain. */
  readonly operators: readonly string[];
  readonly nodes: number;
  /** Whether some tensors are stored in other files. */
  readonly isInParts: boolean;
  /** Whether the model defines functions or has operators with subgraphs. */
  readonly isNested: boolean;
}

export interface OnnxValue {
  readonly name: string;
  /** `other` for anything but a tensor of floats; `undefined` if the file does not state it. */
  readonly type: 'float32' | 'float64' | 'other' | undefined;
  /** A dimension that is not fixed is a name or empty. `undefined` if the file states no shape. */
  readonly dims: readonly (number | string)[] | undefined;
}

const FLOAT = 1;
const DOUBLE = 11;

/** Limits work on hostile files: a real model has a few messages for each operator. */
const MOST_MESSAGES = 30_000;

/** Returns `undefined` if the bytes are not an ONNX model. */
export function readOnnx(bytes: Uint8Array): OnnxModel | undefined {
  let left = MOST_MESSAGES;
  const open = (part: Uint8Array): Message => {
    left -= 1;
    if (left < 0) throw new RangeError('too many messages');
    return fieldsOf(part);
  };
  try {
    const model = open(bytes);
    const graphs = model.messages(7);
    return graphs.length === 1 ? readGraph(model, open(graphs[0]!), open) : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

type Open = (part: Uint8Array) => Message;

function readGraph(model: Message, graph: Message, open: Open): OnnxModel {
  const partsOf = (message: Message, ...fields: readonly number[]): Message[] =>
    fields.flatMap((field) => message.messages(field)).map(open);
  const nodes = partsOf(graph, 1);
  const tensors = partsOf(graph, 5);
  const valued = new Set(tensors.map((tensor) => tensor.text(8)));
  const operators = new Set(nodes.map(operatorOf));
  const attributes = nodes.flatMap((node) => partsOf(node, 5));
  const inNodes = attributes.flatMap((attribute) => partsOf(attribute, 5, 10));
  const sparse = [...partsOf(graph, 15), ...attributes.flatMap((each) => partsOf(each, 22, 23))];
  const inSparse = sparse.flatMap((each) => partsOf(each, 1, 2));
  return {
    inputs: partsOf(graph, 11)
      .map((value) => readValue(value, open))
      .filter(({ name }) => !valued.has(name)),
    outputs: partsOf(graph, 12).map((value) => readValue(value, open)),
    operators: [...operators].toSorted(),
    nodes: nodes.length,
    isInParts: [...tensors, ...inSparse, ...inNodes].some(isExternal),
    isNested: model.messages(25).length > 0 || attributes.some(hasGraph),
  };
}

function operatorOf(node: Message): string {
  const domain = node.text(7);
  const name = node.text(4);
  return domain === '' || domain === 'ai.onnx' ? name : `${domain}.${name}`;
}

function isExternal(tensor: Message): boolean {
  return tensor.messages(13).length > 0 || (tensor.number(14) ?? 0) !== 0;
}

function hasGraph(attribute: Message): boolean {
  return attribute.messages(6).length + attribute.messages(11).length > 0;
}

function readValue(value: Message, open: Open): OnnxValue {
  const name = value.text(1);
  const types = value.messages(2).map(open);
  if (types.length === 0) return { name, type: undefined, dims: undefined };
  const tensors = types[0]!.messages(1).map(open);
  if (tensors.length === 0) return { name, type: 'other', dims: undefined };
  const tensor = tensors[0]!;
  const element = tensor.number(1);
  const type = element === FLOAT ? 'float32' : element === DOUBLE ? 'float64' : 'other';
  const shapes = tensor.messages(2).map(open);
  const dims = shapes[0]?.messages(1).map((each) => {
    const dim = open(each);
    return dim.number(1) ?? dim.text(2);
  });
  return { name, type, dims };
}

/** A protocol buffer message, with its fields by number. */
interface Message {
  /** Returns the last value, as protocol buffers require; `undefined` if the field is absent. */
  number(field: number): number | undefined;
  /** Empty if the field is absent. */
  text(field: number): string;
  messages(field: number): readonly Uint8Array[];
}

const TEXT = new TextDecoder();

/** @throws RangeError if the bytes are not a message. */
function fieldsOf(bytes: Uint8Array): Message {
  const numbers = new Map<number, number>();
  /** Alternating start and end offsets of each field's parts. */
  const parts = new Map<number, number[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    // Numbers above 2^53 lose precision, but no valid length or dimension is that large.
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.length) throw new RangeError('the message is truncated');
      const byte = bytes[at]!;
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a number has too many bytes');
  };
  const skip = (length: number): void => {
    if (length > bytes.length - at) throw new RangeError('the message is truncated');
    at += length;
  };
  while (at < bytes.length) {
    const key = varint();
    // Other readers would truncate the key and see a different field.
    if (key >= 2 ** 32) throw new RangeError('a field number is out of range');
    const field = Math.floor(key / 8);
    const wire = key % 8;
    if (wire === 0) numbers.set(field, varint());
    else if (wire === 1) skip(8);
    else if (wire === 5) skip(4);
    else if (wire === 2) {
      const length = varint();
      skip(length);
      const known = parts.get(field);
      if (known === undefined) parts.set(field, [at - length, at]);
      else known.push(at - length, at);
    } else throw new RangeError('unknown wire type');
  }
  return {
    number: (field) => numbers.get(field),
    text(field) {
      const [from, to] = parts.get(field)?.slice(-2) ?? [];
      return TEXT.decode(bytes.subarray(from ?? 0, to ?? 0));
    },
    messages(field) {
      const places = parts.get(field) ?? [];
      if (places.length > 2 * MOST_MESSAGES) throw new RangeError('too many messages');
      return places.flatMap((from, i) =>
        i % 2 === 0 ? [bytes.subarray(from, places[i + 1])] : [],
      );
    },
  };
}
