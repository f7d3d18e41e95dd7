// An independent issuer: oidc-provider on a free port of this machine, until stdin closes. It prints its address.
// `POST /rotate` gives it a new signing key and forgets the old one, as a real issuer does over the months.
// Its one client gets tokens for itself, meant for whatever audience it names as `resource`.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const newKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' };
};

const newProvider = (url) => {
  const provider = new Provider(url, {
    jwks: { keys: [newKey()] },
    clients: [
      { client_id: 'pipeline', client_secret: 'pipeline', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    ],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          scope: '',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  return provider.callback();
};

let answer;
const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/rotate') {
    answer = newProvider(address());
    response.writeHead(204).end();
  } else {
    answer(request, response);
  }
});
const address = () => `http://127.0.0.1:${server.address().port}`;

server.listen(0, '127.0.0.1', () => {
  answer = newProvider(address());
  console.log(address());
});
process.stdin.resume().on('end', () => process.exit(0));
