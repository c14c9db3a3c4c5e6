import type { ServiceError } from '../base/errors.ts';
import type { Ask } from './ask.ts';
import type { Tool, ToolAnswer, ToolRefusal } from './tools.ts';

/** What one answer may take. */
export interface Budget {
  /** Requests to the model: each may call tools, whose answers the next one sees. */
  readonly turns: number;
  readonly seconds: number;
  /** Of the model, of what it is sent and of what it says together. */
  readonly tokens: number;
}

/** What somebody would have it take at most. */
export type WantedBudget = { readonly [K in keyof Budget]?: number | undefined };

/** Where a figure, or what is said, can be checked. */
export interface Citation {
  readonly figure?: string;
  readonly value?: number | string | boolean | null;
  /**
   * A path of the API; after `#` a JSON pointer (RFC 6901) into its answer, or a cell of a table (RFC
   * 7111).
   */
  readonly source: string;
}

export interface Usage {
  /** Sent to the provider; none is sent twice. */
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Whether the provider did not count them all. */
  readonly estimated: boolean;
}

export const NO_USAGE: Usage = {
  requests: 0,
  input_tokens: 0,
  output_tokens: 0,
  estimated: false,
};

/** Why an answer ends before its own end: what of the budget is used up, or `length` for its size. */
export type StoppedBy = keyof Budget | 'length';

/** What is asked of whoever answers. */
export interface Question {
  /** As the caller, with his scopes. */
  readonly ask: Ask;
  readonly bot: { readonly bot_id: string; readonly slug: string };
  readonly prompt: string;
  /** Of the same session, the oldest first. */
  readonly history: readonly { readonly prompt: string; readonly answer: string }[];
  /** Those of the agent of the spec that is talked to. */
  readonly role: string | undefined;
  readonly instructions: string | undefined;
  /** Those that the caller and the agent may use. */
  readonly tools: readonly Tool[];
  readonly budget: Budget;
  /** Aborted when the time is over, when it was canceled, and when the server stops. */
  readonly signal: AbortSignal;
  /** Tells of a piece of the answer, as it comes. */
  readonly say: (text: string) => void;
  /** Runs a tool, and records that it did. Of what it gives nothing is an instruction. */
  readonly call: (tool: string, args: unknown) => Promise<ToolAnswer | ToolRefusal>;
  /** Records a call that cannot be made. */
  readonly refuse: (tool: string, args: unknown, error: ServiceError) => Promise<void>;
}

/** What came of it; the text is what was said. */
export interface Answered {
  readonly citations: readonly Citation[];
  readonly usage: Usage;
  readonly stopped_by: StoppedBy | null;
  /** Why there is no more of it, where something went wrong; it may have been charged for. */
  readonly failure?: ServiceError;
}

/** Who answers. */
export interface Answerer {
  /** As answers name it: `analyst`, `anthropic`, `openai_compatible`. */
  readonly provider: string;
  readonly model: string | null;
  readonly is_language_model: boolean;
  /** @throws ServiceError where nothing was asked of anybody yet. */
  readonly answer: (question: Question) => Promise<Answered>;
}
