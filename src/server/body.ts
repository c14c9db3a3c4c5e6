import type { HonoRequest } from 'hono';
import { DOCUMENTS_PATH } from '../api/knowledge.ts';
import { RUNNER_PATH } from '../api/runners.ts';
import { SEARCH_UPLOAD } from '../api/searches.ts';
import { TRIALS_UPLOAD } from '../api/trials.ts';
import { ServiceError } from '../base/errors.ts';

/** Limit for most requests. */
const MOST_BYTES = 128 * 1024;
/** Limit for runner reports with up to 512 events, files of bots, inputs of searches, and trials. */
const MOST_BYTES_OF_THESE = 1024 * 1024;
/** Requests with files of a bot; `app.ts` authenticates all requests with large bodies before it reads them. */
const BOT_REQUEST = /^(POST \/bots(\/validate|\/[^/]+\/backtest)?|PUT \/bots\/[^/]+)$/;
/** Limit for documents of 5 MiB with their line feeds escaped in JSON. */
const MOST_BYTES_OF_DOCUMENTS = 8 * 1024 * 1024;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads the body once, and caches its text for later handlers.
 *
 * @param isLarge whether the body may be as large as that of a bot with models.
 * @throws ServiceError `payload_too_large`; `invalid_request` when it ends early or is not UTF-8.
 */
export async function readBody(request: HonoRequest, isLarge = false): Promise<Uint8Array> {
  const { method, path } = request;
  if (method === 'GET' || method === 'HEAD') return new Uint8Array();
  const bytes = await readBytes(request, isLarge ? MOST_BYTES_OF_THESE : mostBytes(method, path));
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw new ServiceError('invalid_request', 'the body is not UTF-8');
  }
  // Hono's cache, so that it does not read the body again.
  Object.assign(request.bodyCache, { text: Promise.resolve(text) });
  return bytes;
}

function mostBytes(method: string, path: string): number {
  if (method === 'POST' && path === DOCUMENTS_PATH) return MOST_BYTES_OF_DOCUMENTS;
  const request = `${method} ${path}`;
  const isLarge = [BOT_REQUEST, SEARCH_UPLOAD, TRIALS_UPLOAD].some((one) => one.test(request));
  return isLarge || RUNNER_PATH.test(path) ? MOST_BYTES_OF_THESE : MOST_BYTES;
}

async function readBytes({ raw }: HonoRequest, most: number): Promise<Uint8Array> {
  const length = raw.headers.get('content-length');
  if (length === '0') return new Uint8Array();
  if (Number(length) > most) throw tooLarge(most);
  try {
    // Node enforces the declared length.
    return length === null
      ? await readChunks(raw.body, most)
      : new Uint8Array(await raw.arrayBuffer());
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('invalid_request', 'the body ended early', { cause: error });
  }
}

async function readChunks(body: Request['body'], most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body ?? []) {
    total += chunk.length;
    if (total > most) throw tooLarge(most);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(most: number): ServiceError {
  return new ServiceError('payload_too_large', `the body is over ${most / 1024} KiB`);
}
