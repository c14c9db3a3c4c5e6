import { parseMonth, partsAnswer, withArchive } from '../../event-archives.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'put archived events of a bot back into the database',
  description:
    "Puts the archived events of a bot back into the database, unchanged, from a month on. A log has no gaps, so later archived months come back, too. Each file is verified first. The files stay; `events archive` uses them again. Servers and workers can run meanwhile. Run it on the server's machine.",
  arguments: { bot: { description: 'slug or id of the bot' } },
  options: {
    month: {
      value: 'month',
      description: 'first month to restore; all archived months by default',
      parse: parseMonth,
    },
  },
  settings: ['event_archive_dir'],
  examples: ['events restore sma-crossover --month 2026-01', 'events restore sma-crossover --json'],
  async run(context, { bot }, { month }) {
    const { restoreEvents } = await import('../../../server/event-archives.ts');
    return withArchive(context, async (archive) => {
      const parts: Parameters<typeof partsAnswer>[1][number][] = [];
      await restoreEvents(archive, bot, month, (part) => parts.push(part));
      return partsAnswer(archive.directory, parts, {
        done: 'Restored the events of',
        none: 'Nothing to restore.',
      });
    });
  },
});
