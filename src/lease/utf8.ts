/** UTF-8 through the URI functions of ECMAScript: TextEncoder belongs to browsers and Node. */

/** @throws URIError for half a surrogate pair. */
export function encodeUtf8(text: string): Uint8Array {
  const escaped = encodeURIComponent(text);
  const bytes = escaped.match(/%..|./g) ?? [];
  return Uint8Array.from(bytes, (byte) =>
    byte.length === 3 ? Number.parseInt(byte.slice(1), 16) : byte.charCodeAt(0),
  );
}

/** `undefined` unless the bytes are UTF-8 in its one shortest form. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  let escaped = '';
  for (const byte of bytes) escaped += `%${byte.toString(16).padStart(2, '0')}`;
  try {
    return decodeURIComponent(escaped);
  } catch {
    return undefined;
  }
}
