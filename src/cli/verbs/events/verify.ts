import { ServiceError } from '../../../base/errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import { withArchive } from '../../event-archives.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'verify the whole logs of bots, with their archived months',
  description:
    "Reads every archived file and every event in the database, and checks the digests of the files, the hash chain from the first event to the last, and the states of the bots. Exits with code 1 and names the first fault of each bot. Run it on the server's machine.",
  arguments: { bot: { description: 'slug or id of a bot; all bots by default', optional: true } },
  settings: ['event_archive_dir'],
  examples: ['events verify', 'events verify sma-crossover --json'],
  async run(context, { bot }) {
    const { verifyLogs } = await import('../../../server/event-archives.ts');
    return withArchive(context, async (archive) => {
      const bots = await Array.fromAsync(verifyLogs(archive, bot));
      const faulty = bots.filter(({ fault }) => fault !== null);
      return {
        data: { directory: archive.directory, bots },
        show(out) {
          if (bots.length === 0) {
            out.line('No bot has recorded an event yet.');
            return;
          }
          out.table(
            [
              { title: 'bot' },
              { title: 'files', align: 'right' },
              { title: 'archived events', align: 'right' },
              { title: 'valid up to event', align: 'right' },
              { title: 'fault' },
            ],
            bots.map(({ bot_id, files, archived_seq, seq, fault }) => [
              bot_id,
              String(files),
              String(archived_seq),
              String(seq),
              fault === null ? '' : describeFault(fault),
            ]),
          );
        },
        failure:
          faulty.length === 0
            ? undefined
            : new ServiceError(
                'events_tampered',
                `the logs of ${formatCountOf(faulty.length, 'bot')} are not intact`,
                {
                  remedy:
                    'Copy missing or altered files from a backup of the directory of archives, and restore altered events with a backup of the database.',
                },
              ),
      };
    });
  },
});

interface ShownFault {
  readonly file: string | null;
  readonly seq: number | null;
  readonly fault: string;
}

function describeFault({ file, seq, fault }: ShownFault): string {
  const where = [seq === null ? [] : `event ${seq}`, file ?? []].flat().join(' in ');
  return `${where}: ${fault}`;
}
