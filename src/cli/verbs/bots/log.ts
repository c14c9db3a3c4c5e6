import type { BotEvent } from '../../../api/bot-state.ts';
import type { getTaskFile, listTaskFiles } from '../../../api/tasks.ts';
import { LOG_FILE } from '../../../backtest/log-lines.ts';
import { ServiceError } from '../../../base/errors.ts';
import type { Client } from '../../../client/client.ts';
import { findStart, followAnswer, LAST_EVENTS, readEvents } from '../../bot-events.ts';
import { BOT_ARGUMENT, findBot } from '../../bots.ts';
import { parseCount } from '../../parse-count.ts';
import { findTask } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';
import type { Answer, Context } from '../../verb.ts';

const NO_LINES = 'No logged lines were found.';

export const verb = defineServerVerb({
  summary: 'show the lines that the strategy of a session or backtest logged',
  description: `Shows the lines of the last ${LAST_EVENTS} bars at which the strategy logged, or all lines after --after-seq. Oldest lines come first, each with the time of its bar, below the task and version of its session. With --follow, continues with new lines until Ctrl-C; with --follow --json, prints one JSON object per bar. If --run names a backtest, shows all of its lines, even if it failed; --json prints them as lines instead of events.`,
  arguments: { bot: BOT_ARGUMENT },
  options: {
    afterSeq: {
      value: 'seq',
      description: 'show all lines of the events after this sequence number',
      parse: parseCount,
    },
    run: { value: 'task', description: 'only lines of this session or backtest' },
    follow: { description: 'continue with new lines', streams: true },
  },
  examples: [
    'bots log sma-crossover',
    'bots log sma-crossover --follow',
    'bots log sma-crossover --run 0198c0de-0000-7000-8000-00000000dddd',
  ],
  async run(server, { bot: bot_ref }, { afterSeq, run: run_id, follow }, context) {
    const wanted = { kind: 'strategy.log', run_id };
    const first = afterSeq ?? (await findStart(server, context, bot_ref, wanted));
    if (run_id !== undefined && (await findLogKind(server, bot_ref, run_id)) === 'backtest') {
      if (!follow && afterSeq === undefined) return backtestAnswer(server, context, run_id);
      throw new ServiceError('usage', `task ${run_id} is a backtest, so all lines are shown`, {
        remedy: 'Leave out --follow and --after-seq.',
      });
    }
    const query = { ...wanted, after_seq: first };
    const linesOf = sessionLines();
    if (follow) return followAnswer(server, context, bot_ref, query, linesOf);
    const events = await Array.fromAsync(readEvents(server, bot_ref, query));
    if (events.length === 0) context.message(NO_LINES);
    return {
      data: { events },
      show(out) {
        for (const line of events.flatMap(linesOf)) out.line(line);
      },
    };
  },
});

/** @throws ServiceError `not_found` if the bot has no such task, or the task keeps no log. */
async function findLogKind(
  server: Client,
  bot_ref: string,
  task_id: string,
): Promise<'backtest' | 'session'> {
  const [{ kind, bot_id }, { answer: bot }] = await Promise.all([
    findTask(server, task_id),
    findBot(server, bot_ref),
  ]);
  if (bot_id !== bot.id) {
    throw new ServiceError('not_found', `task ${task_id} does not belong to bot ${bot_ref}`, {
      remedy: `Find its tasks with \`service-local tasks list --bot ${bot_ref}\`.`,
    });
  }
  if (kind === 'backtest') return kind;
  if (kind === 'paper' || kind === 'production') return 'session';
  throw new ServiceError('not_found', `task ${task_id} is of kind ${kind}, which keeps no log`, {
    remedy: `Find backtests and sessions with \`service-local tasks list --bot ${bot_ref} --kind backtest,paper,production\`.`,
  });
}

async function backtestAnswer(server: Client, context: Context, task_id: string): Promise<Answer> {
  const path = '/tasks/{task_id}/files';
  const { files } = await server.call<typeof listTaskFiles>('get', path, { params: { task_id } });
  const lines: string[] = [];
  if (files.includes(LOG_FILE)) {
    const params = { task_id, name: LOG_FILE };
    const file = server.file<typeof getTaskFile>('/tasks/{task_id}/files/{name}', { params });
    const text = Buffer.concat(await Array.fromAsync(file)).toString();
    lines.push(...text.trimEnd().split('\n'));
  } else context.message(NO_LINES);
  return {
    data: { lines },
    show(out) {
      for (const line of lines) out.line(line);
    },
  };
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
