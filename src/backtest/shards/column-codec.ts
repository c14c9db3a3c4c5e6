/** Typed arrays that a value may contain. */
const KINDS = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array } as const;

type Kind = keyof typeof KINDS;
type Column = Float64Array | Uint32Array | Uint8Array;

/** A column in the JSON text: its kind, its first byte after the text, and its length in elements. */
type ColumnPlace = readonly [kind: Kind, offset: number, length: number];

const ALIGNMENT = Float64Array.BYTES_PER_ELEMENT;
const LENGTH_BYTES = 4;

/**
 * Encodes plain data that contain typed arrays, bit for bit: the length of a JSON text (32 bits,
 * little-endian), the text in UTF-8, and then the arrays. Arrays over the same memory are stored once.
 */
export function encodeColumns(value: unknown): Uint8Array {
  const columns: Column[] = [];
  const places = new Map<ArrayBufferLike, Map<string, ColumnPlace>>();
  let end = 0;
  const placeOf = (kind: Kind, column: Column): ColumnPlace => {
    const { buffer, byteOffset, length, byteLength } = column;
    const known = places.get(buffer) ?? new Map<string, ColumnPlace>();
    places.set(buffer, known);
    const key = `${kind} ${byteOffset} ${length}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const place: ColumnPlace = [kind, end, length];
    known.set(key, place);
    columns.push(column);
    end += aligned(byteLength);
    return place;
  };
  const text = Buffer.from(
    JSON.stringify(value, (_, item: unknown) => {
      if (typeof item === 'number' && !Number.isFinite(item)) return { $number: String(item) };
      if (!ArrayBuffer.isView(item)) return item;
      const kind = kindOf(item);
      if (kind === undefined) throw new TypeError('only columns of doubles and counts are encoded');
      return { $column: placeOf(kind, item as Column) };
    }),
  );
  const start = aligned(LENGTH_BYTES + text.length);
  const bytes = Buffer.alloc(start + end);
  bytes.writeUInt32LE(text.length);
  text.copy(bytes, LENGTH_BYTES);
  let at = start;
  for (const { buffer, byteOffset, byteLength } of columns) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += aligned(byteLength);
  }
  return bytes;
}

/** Decodes the output of `encodeColumns` without its arrays. */
export function decodeText(bytes: Uint8Array): unknown {
  return JSON.parse(textOf(bytes));
}

/** Decodes the output of `encodeColumns`. The arrays share one copy of the bytes. */
export function decodeColumns(bytes: Uint8Array): unknown {
  const columns = bytes.subarray(aligned(LENGTH_BYTES + lengthOf(bytes)));
  const memory = new SharedArrayBuffer(columns.length);
  new Uint8Array(memory).set(columns);
  return JSON.parse(textOf(bytes), (_, item: unknown) => {
    if (typeof item !== 'object' || item === null) return item;
    if ('$number' in item) return Number(item.$number);
    if (!('$column' in item)) return item;
    const [kind, offset, count] = item.$column as ColumnPlace;
    return new (KINDS[kind] as new (
      memory: SharedArrayBuffer,
      offset: number,
      count: number,
    ) => Column)(memory, offset, count);
  });
}

function lengthOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
}

function textOf(bytes: Uint8Array): string {
  const text = bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + lengthOf(bytes));
  return new TextDecoder().decode(text);
}

function kindOf(column: ArrayBufferView): Kind | undefined {
  const kinds = Object.keys(KINDS) as Kind[];
  return kinds.find((kind) => column.constructor === KINDS[kind]);
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}
