import { z } from 'zod';
import { ServiceError, type ErrorCode } from '../base/errors.ts';
import type { Ask } from './call-api.ts';
import { truncateJson } from './truncate-json.ts';

/** Result of a tool, as JSON data. */
export interface ToolAnswer {
  /** Path of the API from which the data come, so that figures can be checked. */
  readonly source: string;
  readonly data: unknown;
  /** Set if data were left out because of the size limit. */
  readonly truncated?: true;
}

/** Error of a tool, as JSON data. */
export interface ToolRefusal {
  readonly error: {
    readonly code: ErrorCode;
    readonly detail: string;
    readonly reason?: string;
    readonly remedy?: string;
    readonly problems?: readonly string[];
  };
}

/** Method and path template of an API operation, such as `GET /bots/{bot_ref}`. */
export type Reach = `${'GET' | 'POST'} /${string}`;

export interface Tool {
  readonly name: string;
  readonly title: string;
  /** Tells the model what the tool returns and when to use it. */
  readonly description: string;
  /** Scope without which the tool is not offered to the caller. */
  readonly scope: 'read' | 'write';
  /** Whether the tool takes a bot. */
  readonly bot: 'required' | 'optional' | 'none';
  /** API operations that the tool may call. */
  readonly reaches: readonly Reach[];
  /** Arguments except `bot`; see `inputWithBot`. */
  readonly input: z.ZodObject;
  /** @throws ServiceError */
  readonly run: (call: ToolCall<never>) => Promise<ToolAnswer>;
}

export interface ToolCall<I> {
  readonly ask: Ask;
  /** Id or slug; undefined if none was given. */
  readonly bot: string | undefined;
  readonly args: I;
  readonly signal: AbortSignal;
  readonly watch: Watch;
}

export interface Watch {
  /**
   * Whether an aborted call was aborted by the caller, so that its runs are canceled. If the server
   * stops, they continue.
   */
  readonly isAbandoned?: () => boolean;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface Progress {
  readonly done: number;
  readonly total: number | undefined;
  readonly message: string;
}

/** Characters in the JSON of a result. */
export const LARGEST_ANSWER = 16_000;

/**
 * Runs a tool. Returns invalid arguments and errors of the API as a `ToolRefusal`, so that a model can
 * correct them. Rejects only if aborted, or because of a bug.
 *
 * @param bot id or slug of the only bot that the tool may use; undefined to take it from the arguments.
 */
export async function callTool(
  tool: Tool,
  ask: Ask,
  bot: string | undefined,
  given: unknown,
  signal: AbortSignal,
  watch: Watch = {},
): Promise<ToolAnswer | ToolRefusal> {
  try {
    const input = bot === undefined ? inputWithBot(tool) : tool.input;
    const parsed = input.safeParse(given ?? {});
    if (!parsed.success) throw wrongArguments(tool, parsed.error);
    const { bot: named, ...args } = parsed.data as { readonly bot?: string };
    const call = {
      ask: restrictAsk(tool, ask),
      bot: bot ?? named,
      args: args as never,
      signal,
      watch,
    };
    const { source, data, truncated } = await tool.run(call);
    const cut = truncateJson(data, LARGEST_ANSWER);
    const isCut = cut.truncated || truncated === true;
    return { source, data: cut.data, ...(isCut && { truncated: true }) };
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    return refusal(error);
  }
}

/** Arguments of a tool for callers that have not chosen a bot: they include `bot` if the tool takes one. */
export function inputWithBot({ input, bot }: Pick<Tool, 'input' | 'bot'>): z.ZodObject {
  if (bot === 'none') return input;
  const ref = z.string().min(1).max(128).describe('Id or slug of the bot.');
  return input.extend({ bot: bot === 'required' ? ref : ref.optional() });
}

export function refusal({ code, message, reason, remedy, problems }: ServiceError): ToolRefusal {
  const listed = problems
    .slice(0, 10)
    .map(({ pointer = '', message: what }) => `${pointer} ${what}`.trim());
  return {
    error: {
      code,
      detail: message,
      ...(reason !== undefined && { reason }),
      ...(remedy !== undefined && { remedy }),
      ...(listed.length > 0 && { problems: listed }),
    },
  };
}

function wrongArguments({ name }: Tool, { issues }: z.ZodError): ServiceError {
  return new ServiceError('invalid_request', `invalid arguments for ${name}`, {
    reason: 'wrong_arguments',
    problems: issues.map(({ path, message, code }) => ({
      code,
      message,
      pointer: path.map((step) => `/${String(step)}`).join(''),
    })),
  });
}

/** Wraps `ask` so that a tool cannot call operations outside its `reaches`, whatever its arguments. */
function restrictAsk({ name, reaches }: Tool, ask: Ask): Ask {
  const known = reaches.map((reach) => {
    const [method, path] = reach.split(' ') as [string, string];
    return { method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) };
  });
  return (method, path, ...rest) => {
    const [plain] = path.split('?') as [string];
    const isKnown = known.some((one) => one.method === method && one.pattern.test(plain));
    if (!isKnown)
      throw new Error(`${name} may not call ${method} ${plain}: it is missing in \`reaches\``);
    return ask(method, path, ...rest);
  };
}

export function defineTool<const I extends z.ZodObject>(
  tool: Omit<Tool, 'input' | 'run'> & {
    readonly input: I;
    readonly run: (call: ToolCall<z.output<I>>) => Promise<ToolAnswer>;
  },
): Tool {
  return tool;
}

export const taskId = z.string().min(1).max(128);

export const limit = (most: number, usual: number) => z.int().min(1).max(most).default(usual);

export const version = z.int().min(1);
