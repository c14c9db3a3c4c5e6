import { withInsecure, INSECURE } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'install the daemon as a service of this machine',
  description:
    'Installs the daemon as a service of systemd, or of launchd on macOS. The service starts when this user logs in, or with --system when the machine starts, and restarts after a failure. It takes the home directory, the paths of lease and keyset, SERVICE_LICENSE_ROOT, the proxies and NODE_EXTRA_CA_CERTS from the current environment, but nothing that contains a password.',
  options: {
    system: { description: 'install for the machine instead of this user; requires root' },
    print: { description: 'print the service file without installing it' },
    insecure: INSECURE,
  },
  settings: ['server_url'],
  examples: [
    'daemon install',
    'daemon install --print > service-local.service',
    'daemon install --system',
  ],
  async run(context, _args, { system, print, insecure }) {
    const { refuseInsecure } = await import('../../../client/insecure-http.ts');
    const { serviceManager } = await import('../../../../daemon/service-unit.ts');
    const { installService, thisService } = await import('../../service.ts');
    const scope = system ? 'system' : 'user';
    const { io, message } = context;
    const settings = withInsecure(context.settings, insecure);
    refuseInsecure(settings.server_url, settings.server_insecure);
    const manager = serviceManager(process.platform, scope, io.env);
    const { service, owner, warnings } = await thisService(scope, {
      ...context,
      settings,
    });
    const text = manager.describe(service);
    for (const warning of warnings) message(`warning: ${warning}`);
    if (!print) await installService(manager, service, { home: settings.home, owner });
    return {
      data: { installed: !print, scope, path: manager.path, text },
      show(out) {
        if (print) {
          out.line(text.trimEnd());
          return;
        }
        out.line(`The daemon runs as a service, installed as ${manager.path}.`);
        if (!system && process.platform === 'linux') {
          out.line(
            'It runs while this user is logged in; to run it always, use `loginctl enable-linger`.',
          );
        }
      },
    };
  },
});
