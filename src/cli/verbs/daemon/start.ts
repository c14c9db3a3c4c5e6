import { withInsecure, INSECURE, viewLicense } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

const NOT_ENROLLED =
  'This machine is not enrolled and has no lease: the daemon waits until `service-local license enroll` has enrolled it.';

export const verb = defineVerb({
  summary: 'start the daemon in the background',
  description:
    'Starts `daemon run` in the background until `daemon stop` or the shutdown of the machine. Does nothing if the daemon already runs. To start it with the machine, use `daemon install`.',
  options: { insecure: INSECURE },
  settings: ['server_url'],
  examples: ['daemon start', 'daemon start --url https://licenses.example'],
  async run(context, _args, { insecure }) {
    const { settings, io, message } = context;
    const { startDaemon, viewDaemon } = await import('../../daemon.ts');
    const { home } = settings;
    const started = await startDaemon(withInsecure(settings, insecure), io.env);
    if (started !== undefined) {
      const { held, renewedBy } = await viewLicense(context, Date.now());
      if (held === undefined && renewedBy === 'nobody') message(NOT_ENROLLED);
      return {
        data: { pid: started, home, started: true },
        show: (out) => out.line(`The daemon runs as process ${started}.`),
      };
    }
    const { note } = await viewDaemon(home, io.env);
    return {
      data: { pid: note?.pid ?? null, home, started: false },
      show(out) {
        const who = note && `, as process ${note.pid}, and uses ${note.server_url}`;
        out.line(`The daemon is already running${who ?? ''}.`);
      },
    };
  },
});
