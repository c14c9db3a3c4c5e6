/**
 * UTF-8 by the URI functions of ECMAScript, because TextEncoder exists only in browsers and Node. They
 * are slow, so ASCII, the content of nearly all leases, takes a shorter way.
 */

/** @throws URIError for half a surrogate pair */
export function encodeUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return encodeEscaped(text);
    bytes[i] = code;
  }
  return bytes;
}

function encodeEscaped(text: string): Uint8Array {
  const escaped = encodeURIComponent(text);
  const bytes = escaped.match(/%..|./g) ?? [];
  return Uint8Array.from(bytes, (byte) =>
    byte.length === 3 ? Number.parseInt(byte.slice(1), 16) : byte.charCodeAt(0),
  );
}

/** Returns undefined for invalid UTF-8, which includes overlong forms. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  let text = '';
  for (const byte of bytes) {
    if (byte > 0x7f) return decodeEscaped(bytes);
    text += String.fromCharCode(byte);
  }
  return text;
}

function decodeEscaped(bytes: Uint8Array): string | undefined {
  let escaped = '';
  for (const byte of bytes) escaped += `%${byte.toString(16).padStart(2, '0')}`;
  try {
    return decodeURIComponent(escaped);
  } catch {
    return undefined;
  }
}
