import { pipeline, Transform, type Readable, type Writable } from 'node:stream';
import { parseJSONRPCMessage, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** Bytes; the limit of the transport, which rejects longer lines itself. */
const LONGEST_LINE = 10 * 1024 * 1024;

/**
 * Passes on lines that are JSON-RPC messages and answers all others with a JSON-RPC error, because the
 * transport would ignore them.
 */
export function messagesOf(input: Readable, output: Writable): Readable {
  let rest: Buffer = Buffer.alloc(0);
  const lines = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
        const line = rest.subarray(0, end + 1);
        rest = rest.subarray(end + 1);
        const error = faultOf(line.toString());
        if (error === undefined) this.push(line);
        else output.write(`${JSON.stringify({ jsonrpc: '2.0', id: null, error })}\n`);
      }
      if (rest.length > LONGEST_LINE) {
        this.push(rest);
        rest = Buffer.alloc(0);
      }
      done();
    },
  });
  // The transport notices the end and errors on the returned stream.
  pipeline(input, lines, () => {});
  return lines;
}

function faultOf(line: string): { readonly code: number; readonly message: string } | undefined {
  if (line.trim() === '') return undefined;
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return { code: ProtocolErrorCode.ParseError, message: 'Parse error: the line is not JSON' };
  }
  try {
    parseJSONRPCMessage(message);
    return undefined;
  } catch {
    const why = Array.isArray(message)
      ? 'batches are not supported'
      : 'the line is not a JSON-RPC 2.0 message';
    return { code: ProtocolErrorCode.InvalidRequest, message: `Invalid Request: ${why}` };
  }
}
