import type { Client } from '../../client/client.ts';
import { ServiceError } from '../../base/errors.ts';
import { LONGEST_FILE, type Ask, type ApiResponse } from '../call-api.ts';

/** A route whose types are unknown here. */
interface AnyRoute {
  readonly method: string;
  readonly path: string;
  readonly responses: object;
}

const FILE = /^\/tasks\/[^/]+\/files\//;

/** Calls the API of a server through the client, with the client's token. */
export function askThrough(client: Client): Ask {
  return async (method, path, body, { signal } = {}) => {
    signal?.throwIfAborted();
    try {
      const json = FILE.test(path)
        ? await fileOf(client, path)
        : await client.call<AnyRoute>(method, path, { ...(body !== undefined && { body }) });
      return { status: 200, json };
    } catch (error) {
      if (error instanceof ServiceError && !NO_RESPONSE_CODES.has(error.code))
        return toErrorResponse(error);
      throw error;
    }
  };
}

/** Codes with which the client reports that there was no response. */
const NO_RESPONSE_CODES: ReadonlySet<string> = new Set(['server_unreachable', 'interrupted']);

function toErrorResponse({
  status,
  code,
  message,
  reason,
  remedy,
  problems,
}: ServiceError): ApiResponse {
  const errors = problems.map(({ message: detail, ...rest }) => ({ ...rest, detail }));
  return { status, json: { code, detail: message, reason, remedy, errors } };
}

async function fileOf(client: Client, path: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of client.file<AnyRoute>(path, {})) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length >= LONGEST_FILE) return text.slice(0, LONGEST_FILE);
  }
  return text + decoder.decode();
}
