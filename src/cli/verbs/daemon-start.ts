import { allowing, INSECURE } from '../license.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Starts `daemon run` in the background, where it stays until it is stopped or the machine is; one that runs already stays. `daemon install` lets it start with the machine.',
  options: { insecure: INSECURE },
  settings: ['server_url'],
  examples: ['daemon start', 'daemon start --url https://licenses.example'],
  async run({ settings, io }, _args, { insecure }) {
    const { startDaemon, viewDaemon } = await import('../daemon.ts');
    const { home } = settings;
    const started = await startDaemon(allowing(settings, insecure), io.env);
    if (started !== undefined) {
      return {
        data: { pid: started, home, started: true },
        show: (out) => out.line(`The daemon runs as the process ${started}.`),
      };
    }
    const { note } = await viewDaemon(home, io.env);
    return {
      data: { pid: note?.pid ?? null, home, started: false },
      show(out) {
        const who = note && `, as the process ${note.pid}, and asks ${note.server_url}`;
        out.line(`The daemon runs already${who ?? ''}.`);
      },
    };
  },
});
