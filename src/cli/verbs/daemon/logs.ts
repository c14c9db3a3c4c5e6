import { setTimeout as wait } from 'node:timers/promises';
import { parseCount } from '../../parse-count.ts';
import type { LogEntry } from '../../daemon-log.ts';
import { defineVerb } from '../../verb.ts';

const LOOK_AGAIN_MS = 250;

export const verb = defineVerb({
  summary: 'show what the daemon logged',
  description:
    'Shows the last lines of what the daemon logged; with --follow also those to come, until Ctrl-C. With --json it tells what there is, and ends.',
  options: {
    lines: {
      value: 'count',
      short: 'n',
      description: 'how many lines (default: 50)',
      parse: parseCount,
    },
    follow: { short: 'f', description: 'go on with the lines to come' },
  },
  examples: [
    'daemon logs',
    'daemon logs -n 5 --follow',
    "daemon logs --json | jq '.entries[].msg'",
  ],
  async run({ settings, io: { stdout }, message }, _args, { lines = 50, follow }) {
    const { daemonFiles } = await import('../../../../daemon/files.ts');
    const { readLog, readLogSince } = await import('../../daemon-log.ts');
    const files = daemonFiles(settings.home);
    const part = await readLog(files);
    const entries = part.entries.slice(Math.max(0, part.entries.length - lines));
    if (part.entries.length === 0) message(`nothing is logged in ${files.log}`);
    return {
      data: { log: files.log, entries },
      async show(out) {
        for (const entry of entries) out.line(lineOf(entry));
        if (!follow) return;
        let { end } = part;
        // A reader that has seen enough has closed the pipe.
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
