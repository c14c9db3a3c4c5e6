import { pipeline, Transform, type Readable, type Writable } from 'node:stream';
import { parseJSONRPCMessage, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** As many bytes as the transport takes of a line; of a longer one it says so itself. */
const LONGEST_LINE = 10 * 1024 * 1024;

/**
 * The lines of the input that are messages of JSON-RPC, for the transport, which would leave others
 * without an answer. Those are answered here, by the errors that JSON-RPC has for them.
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
  // What ends it the transport is told by the stream that it reads.
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
      ? 'there are no batches'
      : 'it is no message of JSON-RPC 2.0';
    return { code: ProtocolErrorCode.InvalidRequest, message: `Invalid Request: ${why}` };
  }
}
