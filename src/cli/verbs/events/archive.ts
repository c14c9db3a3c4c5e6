import {
  firstKeptMonth,
  parseMonth,
  partsAnswer,
  refuseEphemeral,
  startOfMonth,
  withArchive,
} from '../../event-archives.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'move the events of past months from the database to files',
  description:
    "Moves events that were recorded before a month to Parquet files, by bot and month. Each file is written, made durable and read back before its events leave the database, so the command may be killed at any moment; run it again to continue. The last event of each bot stays. Servers and workers can run meanwhile. Workers resume open paper sessions from the files, so the directory must be available to all workers. Run it on the server's machine.",
  arguments: { bot: { description: 'slug or id of a bot; all bots by default', optional: true } },
  options: {
    before: {
      value: 'month',
      description: 'first month that stays in the database; by default the third before this one',
      parse: parseMonth,
    },
  },
  settings: ['event_archive_dir'],
  examples: [
    'events archive',
    'events archive sma-crossover --before 2026-01',
    'events archive --event-archive-dir /archive --json | jq .files',
  ],
  async run(context, { bot }, { before = firstKeptMonth(Date.now()) }) {
    refuseEphemeral(context.settings.event_archive_dir, context.io.env);
    const { archiveEvents } = await import('../../../server/event-archives.ts');
    return withArchive(context, async (archive) => {
      const parts: Parameters<typeof partsAnswer>[1][number][] = [];
      await archiveEvents(archive, bot, startOfMonth(before), (part) => parts.push(part));
      return partsAnswer(archive.directory, parts, {
        done: 'Archived:',
        none: `No event from before ${before} is left to archive. The last event of each bot stays in the database.`,
      });
    });
  },
});
