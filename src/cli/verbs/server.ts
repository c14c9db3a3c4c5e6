import { runUntilStopped } from '../run-until-stopped.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'run the server for bots, backtests, licenses and devices',
  description:
    'Stores its data in a SQLite file in the home directory, or in the PostgreSQL database that DATABASE_URL specifies. Signs leases with the key in the file that SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH specifies. Uses the language model of chat_provider with the key in SERVICE_CHAT_API_KEY. On Ctrl-C or SIGTERM, finishes accepted requests and stops.',
  options: {
    logJson: { description: 'log in JSON, one object per line' },
  },
  settings: [
    'server_host',
    'server_port',
    'server_public_url',
    'server_trusted_proxies',
    'server_tasks',
    'catalogue_dir',
    'event_archive_dir',
    'exchanges_file',
    'clusters_file',
    'knowledge_file',
    'notifications_file',
    'workers',
    'task_file_days',
    'paper_sessions',
    'production_deployments',
    'strategy_timeout_seconds',
    'custom_code',
    'custom_code_memory_mb',
    'chat_provider',
    'chat_model',
    'chat_base_url',
    'chat_turns',
    'chat_seconds',
    'chat_tokens',
    'license_enforcement_enabled',
    'license_registry_enforced',
    'license_clone_policy',
    'license_ttl_seconds',
    'license_ttl_max_seconds',
    'license_grace_period_seconds',
    'license_grace_period_max_seconds',
    'license_issuer',
    'license_product',
  ],
  examples: [
    'server',
    'server --host 0.0.0.0 --public-url https://licenses.example --log-json',
    'server --port 0 --license-ttl-seconds 86400',
  ],
  async run({ settings, io }, _args, { logJson }) {
    const { startServer } = await import('../../server/server.ts');
    const { url } = await runUntilStopped(io, logJson, (log) => startServer(settings, io.env, log));
    return { data: { url }, show() {} };
  },
});
