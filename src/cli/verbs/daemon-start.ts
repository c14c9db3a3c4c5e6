import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Starts `daemon run` in the background, where it stays until it is stopped or the machine is. `daemon install` lets it start with the machine.',
  settings: ['server_url'],
  examples: ['daemon start', 'daemon start --url https://licenses.example'],
  async run({ settings, io }) {
    const { startDaemon } = await import('../daemon.ts');
    const pid = await startDaemon(settings, io.env);
    return {
      data: { pid, home: settings.home },
      show: (out) => out.line(`The daemon runs as the process ${pid}.`),
    };
  },
});
