/** Content of a notification, for programs and for people. */
import { printableLine } from '../../base/printable.ts';

export const NOTICE_TYPES = [
  'bot.halted',
  'bots.halted',
  'bot.drawdown',
  'bot.no_bars',
  'bot.error',
  'license.lease_expires',
  'many',
  'test',
] as const;

/** Body of a webhook. */
export interface Notice {
  readonly type: (typeof NOTICE_TYPES)[number];
  /** Time of the occurrence, RFC 3339 in UTC. */
  readonly timestamp: string;
  readonly data: {
    /** Name of the rule; null for a test of a channel. */
    readonly rule: string | null;
    /** One line for people. */
    readonly summary: string;
    /** Null if it is not about one bot. */
    readonly bot: { readonly id: string; readonly slug: string; readonly name: string } | null;
    /** Page of the console. */
    readonly url: string;
    /** Facts that depend on the type. */
    readonly details: Readonly<Record<string, string | number | null>>;
  };
}

interface NoticeText {
  /** One line without control characters. */
  readonly subject: string;
  readonly body: string;
}

export interface OutgoingMessage {
  readonly delivery_id: string;
  /** JSON of the notice. */
  readonly body: string;
  readonly text: NoticeText;
  readonly timeoutMs: number;
  /** Aborted after `timeoutMs`, and when the server stops. */
  readonly signal: AbortSignal;
}

/** Formats a notice for people. */
export function formatNotice({ timestamp, data }: Notice): NoticeText {
  const { summary, rule, details, url } = data;
  const facts: Notice['data']['details'] = {
    time: timestamp,
    ...(rule !== null && { rule }),
    ...details,
  };
  const lines = Object.entries(facts).flatMap(([name, value]) =>
    value === null ? [] : [`${name.replaceAll('_', ' ')}: ${printableLine(String(value))}`],
  );
  const subject = printableLine(summary);
  return { subject, body: [subject, '', ...lines, '', url].join('\n') };
}
