import { setTimeout as wait } from 'node:timers/promises';
import { parseCount } from '../../parse-count.ts';
import type { LogEntry } from '../../daemon-log.ts';
import { defineVerb } from '../../verb.ts';

const LOOK_AGAIN_MS = 250;

export const verb = defineVerb({
  summary: 'show the log of the daemon',
  description:
    'Shows the last lines of the log of the daemon. With --follow, also shows new lines until Ctrl-C, except with --json.',
  options: {
    lines: {
      value: 'count',
      short: 'n',
      description: 'number of lines (default: 50)',
      parse: parseCount,
    },
    follow: { short: 'f', description: 'show new lines as they are logged' },
  },
  examples: [
    'daemon logs',
    'daemon logs -n 5 --follow',
    "daemon logs --json | jq '.entries[].msg'",
  ],
  async run({ settings, io: { stdout }, message }, _args, { lines = 50, follow }) {
    const { daemonFiles } = await import('../../../../daemon/daemon-files.ts');
    const { readLog, readLogSince } = await import('../../daemon-log.ts');
    const files = daemonFiles(settings.home);
    const part = await readLog(files);
    const entries = part.entries.slice(Math.max(0, part.entries.length - lines));
    if (part.entries.length === 0) message(`${files.log} has no entries`);
    return {
      data: { log: files.log, entries },
      async show(out) {
        for (const entry of entries) out.line(lineOf(entry));
        if (!follow) return;
        let { end } = part;
        // The reader of the output, such as `head`, has closed the pipe.
        while (!stdout.errored) {
          await wait(LOOK_AGAIN_MS);
          const added = await readLogSince(files, end);
          for (const entry of added.entries) out.line(lineOf(entry));
          ({ end } = added);
        }
      },
    };
  },
});

/** `2026-01-02T03:04:05.678Z info the lease was renewed`. */
function lineOf({ time, level, msg }: LogEntry): string {
  return `${time} ${level} ${msg}`;
}
