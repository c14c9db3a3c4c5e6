import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'end the daemon, and wait until it is gone',
  description:
    'Ends the daemon of this home, however it was started, and waits until it is gone. Where a service manager starts it, it is back with the next start of the machine; see `daemon uninstall`.',
  examples: ['daemon stop'],
  async run({ settings: { home } }) {
    const { stopDaemon } = await import('../../daemon.ts');
    const pid = await stopDaemon(home);
    return {
      data: { stopped: pid !== undefined, pid: pid ?? null, home },
      show: (out) =>
        out.line(
          pid === undefined
            ? `No daemon runs for ${home}.`
            : `The daemon, process ${pid}, has stopped.`,
        ),
    };
  },
});
