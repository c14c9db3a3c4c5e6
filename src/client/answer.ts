import type { Problem } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import { printableLine } from '../base/printable.ts';
import { errorFromProblem, isProblem } from './problem.ts';

export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const MAX_MESSAGE_LENGTH = 1000;

/**
 * Returns the JSON body of a successful response; undefined for status 204.
 *
 * @throws ServiceError the error in any other response; `server_unreachable` if the response does
 * not come from a service-local server.
 */
export function readAnswer(answer: Exchanged, origin: string): unknown {
  const { status, headers, text } = answer;
  if (headers['service-name'] !== 'service-local') throw notAServer(origin, status);
  if (status === 204) return undefined;
  const body = parsed(text);
  if (status >= 200 && status < 300 && body !== undefined) return body;
  throw isProblem(body) ? errorOf(body, answer) : notAServer(origin, status);
}

export function notAServer(origin: string, status?: number): ServiceError {
  const what = status === undefined ? 'the response' : `the response (status ${status})`;
  return new ServiceError(
    'server_unreachable',
    `${origin}: ${what} is not that of a service-local server`,
    { remedy: CHECK_SERVER },
  );
}

export const CHECK_SERVER =
  'Check that the server runs and that --url (SERVICE_LOCAL_SERVER_URL) is its origin.';

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The texts are bounded and printable, because they are shown, logged and stored. */
function errorOf(problem: Problem, { status, headers }: Exchanged): ServiceError {
  const { detail, reason, remedy, request_id: request } = problem;
  return errorFromProblem(
    {
      ...problem,
      detail: shortened(status >= 500 ? `${detail} (request_id ${request})` : detail),
      reason: reason && shortened(reason),
      remedy: remedy && shortened(remedy),
    },
    headers['retry-after'],
  );
}

function shortened(text: string): string {
  const line = printableLine(text);
  return line.length > MAX_MESSAGE_LENGTH ? `${line.slice(0, MAX_MESSAGE_LENGTH)}…` : line;
}
