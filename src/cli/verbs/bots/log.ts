import type { BotEvent } from '../../../api/bot-state.ts';
import { ServiceError } from '../../../base/errors.ts';
import type { Client } from '../../../client/client.ts';
import { findStart, followAnswer, LAST_EVENTS, readEvents } from '../../bot-events.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { parseCount } from '../../parse-count.ts';
import { findTask } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show the lines that the strategy of a session logged',
  description: `Shows the lines of the last ${LAST_EVENTS} bars at which the strategy logged, or all lines after --after-seq. Oldest lines come first, each with the time of its bar, below the task and version of its session. With --follow, continues with new lines until Ctrl-C; with --follow --json, prints one JSON object per bar. The log of a backtest is the result file log.txt.`,
  arguments: { bot: BOT_ARGUMENT },
  options: {
    afterSeq: {
      value: 'seq',
      description: 'show all lines of the events after this sequence number',
      parse: parseCount,
    },
    run: { value: 'task', description: 'only lines of this session' },
    follow: { description: 'continue with new lines', streams: true },
  },
  examples: ['bots log sma-crossover', 'bots log sma-crossover --follow'],
  async run(server, { bot: bot_ref }, { afterSeq, run: run_id, follow }, context) {
    if (run_id !== undefined) await requireSession(server, bot_ref, run_id);
    const wanted = { kind: 'strategy.log', run_id };
    const first = afterSeq ?? (await findStart(server, context, bot_ref, wanted));
    const query = { ...wanted, after_seq: first };
    const linesOf = sessionLines();
    if (follow) return followAnswer(server, context, bot_ref, query, linesOf);
    const events = await Array.fromAsync(readEvents(server, bot_ref, query));
    if (events.length === 0) context.message('No logged lines were found.');
    return {
      data: { events },
      show(out) {
        for (const line of events.flatMap(linesOf)) out.line(line);
      },
    };
  },
});

/** @throws ServiceError `not_found` if the task is unknown or not a session. */
async function requireSession(server: Client, bot_ref: string, task_id: string): Promise<void> {
  const { kind } = await findTask(server, task_id);
  if (kind === 'paper' || kind === 'production') return;
  throw new ServiceError('not_found', `task ${task_id} is of kind ${kind}, not a session`, {
    remedy:
      kind === 'backtest'
        ? `Its lines are in log.txt, which \`service-local tasks result ${task_id} --out DIR\` writes.`
        : `Find the sessions of the bot with \`service-local bots deployments ${bot_ref}\`.`,
  });
}

/** Returns a function that formats events in order, with a heading wherever another session begins. */
function sessionLines(): (event: BotEvent) => string[] {
  let last: string | null | undefined;
  return ({ run_id, version, occurred_at, payload }) => {
    const { lines } = payload as { readonly lines: readonly string[] };
    const gap = last === undefined ? [] : [''];
    const isSame = run_id === last;
    last = run_id;
    return [
      ...(isSame ? [] : [...gap, `session ${run_id}, version ${version}`]),
      ...lines.map((line) => `${occurred_at} ${line}`),
    ];
  };
}
