import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'stop the daemon, and wait until it has ended',
  description:
    'Stops the daemon of this home directory and waits until it has ended. A service manager starts it again with the machine; to prevent this, use `daemon uninstall`.',
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
