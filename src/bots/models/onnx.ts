/**
 * What an ONNX file says of itself, as far as it is looked at before anything runs it: a reader of the
 * few fields of its protocol buffers that matter here. The file may come from anybody.
 *
 * @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */

export interface OnnxModel {
  /** Without those that have values of their own. */
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Each operator once; those of other domains as `domain.Operator`. */
  readonly operators: readonly string[];
  readonly nodes: number;
  /** Whether some of its numbers are in other files. */
  readonly isInParts: boolean;
  /** Whether it defines operators of its own, or has graphs within operators. */
  readonly isNested: boolean;
}

export interface OnnxValue {
  readonly name: string;
  /** `other` for what is no tensor of numbers; `undefined` where the file leaves it open. */
  readonly type: 'float32' | 'float64' | 'other' | undefined;
  /** A name, or an empty text, where a dimension is not fixed; undefined where nothing is said. */
  readonly dims: readonly (number | string)[] | undefined;
}

const FLOAT = 1;
const DOUBLE = 11;

/** Looked into; models have some for each operator. Millions would fit into a file. */
const MOST_MESSAGES = 30_000;

/** Undefined when the bytes are no ONNX model. */
export function readOnnx(bytes: Uint8Array): OnnxModel | undefined {
  let left = MOST_MESSAGES;
  const open = (part: Uint8Array): Message => {
    left -= 1;
    if (left < 0) throw new RangeError('it has too many parts');
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

/** The fields of a message of protocol buffers, by number. */
interface Message {
  /** The last, as is the rule; undefined when there is none. */
  number(field: number): number | undefined;
  /** Empty when there is none. */
  text(field: number): string;
  messages(field: number): readonly Uint8Array[];
}

const TEXT = new TextDecoder();

/** @throws RangeError for bytes that are no message. */
function fieldsOf(bytes: Uint8Array): Message {
  const numbers = new Map<number, number>();
  /** Where each begins and ends, one behind the other. */
  const parts = new Map<number, number[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    // Beyond 2^53 it is nobody's length or dimension; negative numbers are, and mean nothing here.
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.length) throw new RangeError('it ends early');
      const byte = bytes[at]!;
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a number is too long');
  };
  const skip = (length: number): void => {
    if (length > bytes.length - at) throw new RangeError('it ends early');
    at += length;
  };
  while (at < bytes.length) {
    const key = varint();
    // Other readers would cut it, and see another field.
    if (key >= 2 ** 32) throw new RangeError('a field is out of range');
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
    } else throw new RangeError('it is of no wire type');
  }
  return {
    number: (field) => numbers.get(field),
    text(field) {
      const [from, to] = parts.get(field)?.slice(-2) ?? [];
      return TEXT.decode(bytes.subarray(from ?? 0, to ?? 0));
    },
    messages(field) {
      const places = parts.get(field) ?? [];
      if (places.length > 2 * MOST_MESSAGES) throw new RangeError('it has too many parts');
      return places.flatMap((from, i) =>
        i % 2 === 0 ? [bytes.subarray(from, places[i + 1])] : [],
      );
    },
  };
}
