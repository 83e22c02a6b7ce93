import { answer, calling, fail, type Scripts, say } from './scripts.js';

/** Odd but legal words of a server's answer. */
export const ANSWERS: Scripts = {
  'numbers that no double holds, or in unusual notation': calling(
    answer('{"content":[],"n":[9007199254740993,-9007199254740993,1.0,-0,0.10,1e400,-1E+400,5e-324,1e-400,0e0]}'),
  ),
  'characters with needless escapes, and raw ones that may be escaped': calling(
    answer(
      '{"content":[{"type":"text","text":"\\u0041\\/\\b\\f\\r\\n\\t\\"\\\\ é\\u00e9 😀\\ud83d\\uDE00 \\u2028\u2028\u2029\\u0000\u007f\ufeff\uffff"}]}',
    ),
  ),
  'half a surrogate pair': calling(answer('{"content":[{"type":"text","text":"\\ud83d and \\ude00\\ud83d"}]}')),
  'duplicate members': calling(
    answer('{"content":[],"_meta":{"k":1,"k":2},"vendor":1,"vendor":{"a":1,"a":[]},"\\u0076endor":3}'),
  ),
  'the id and the version last': calling(say('{"result":{"content":[],"vendor":[]},"id":@id@,"jsonrpc":"2.0"}')),
  'unknown members at the root': calling(
    say('{"vendor":1.0,"jsonrpc":"2.0","trace":{"id":7,"method":"none"},"id":@id@,"result":{},"params":null,"":0}'),
  ),
  'keys written with escapes': calling(
    say('{"js\\u006fnrpc":"2.0","\\u0069d":@id@,"r\\u0065sult":{"\\u0063ontent":[],"is\\u0045rror":false}}'),
  ),
  'the version written with an escape': calling(say('{"jsonrpc":"2\\u002e0","id":@id@,"result":{}}')),
  'white space wherever it may be': calling(
    say(' \t{ "jsonrpc"\t: "2.0" ,\r "id" :\t@id@ , "result" : { "content" : [ ] , "a" :\r[ 1 ,\t2 ] } }\t '),
  ),
  'no white space and an empty result': calling(answer('{}')),
  'four hundred arrays inside each other': calling(answer('{"content":[],"deep":@deep:400@}')),
  'names that mean something to a program': calling(
    answer('{"__proto__":{"x":1},"constructor":null,"toString":0,"hasOwnProperty":[],"":{"":[]},"content":[]}'),
  ),
  'content with unknown members': calling(
    answer('{"content":[{"type":"text","text":"","vendor":-0},{"x":[1.0],"text":"\\u0041","type":"text"}]}'),
  ),
  'every kind of content there is': calling(
    answer(
      '{"content":[{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"audience":["user"],"priority":1.0}},{"type":"audio","data":"","mimeType":"audio/wav"},{"type":"resource_link","uri":"odd://x","name":"x","size":1e1,"icons":[{"src":"data:,","sizes":["any"],"theme":"dark"}],"title":"X","_meta":{"a":1}},{"type":"resource","resource":{"uri":"odd:\\/\\/y","text":"\\u0041","mimeType":"text/plain","_meta":{}},"annotations":{"lastModified":"2025-01-12T15:00:58Z"}},{"type":"resource","resource":{"uri":"odd://z","blob":"AA=="}}]}',
    ),
  ),
  'an error of a tool': calling(answer('{"isError":true,"content":[{"type":"text","text":"no"}],"vendor":1.0}')),
  'structured content': calling(
    answer(
      '{"structuredContent":{"z":-0, "a":[ 1.50 , 2e0 ],"z":null},"content":[{"type":"text","text":"{\\"z\\":-0}"}]}',
    ),
  ),
  'metadata of the vendor': calling(
    answer('{"_meta":{"vendor.example/x":{"deep":[1e400]},"progressToken":7,"traceparent":"00-0-0-00"},"content":[]}'),
  ),
  'a result of a modern server': calling(
    answer('{"content":[],"resultType":"complete","ttlMs":0,"cacheScope":"private","serverInfo":{"name":"x"}}'),
  ),
  'a result that holds lists, as the answer to a call': calling(
    answer('{"content":[],"tools":[{"name":"x"}],"resources":null,"nextCursor":"","protocolVersion":"1"}'),
  ),
  'a result that holds what looks like a message': calling(
    answer('{"content":[],"x":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}},"id":2,"error":{}}'),
  ),
  'a result of five million characters': calling(answer('{"content":[{"type":"text","text":"@long:5000000@"}]}')),
  'characters that arrive in pieces': calling([
    'cut',
    '{"jsonrpc":"2.0","id":@id@,"result":{"content":[],"é":"😀\u2028é"}}',
  ]),
  'an error without data': calling(fail('{"code":-32000,"message":"no"}')),
  'an error with data and what nobody knows': calling(
    fail('{"data":{"n":9007199254740993,"deep":[[[]]],"deep":null},"message":"n\\u006f","vendor":1.0,"code":-32603}'),
  ),
  'an error whose data is null, and one root member more': calling(
    say('{"error":{"code":1,"message":"","data":null},"vendor":[],"id":@id@,"jsonrpc":"2.0"}'),
  ),
  'an error with a code of its own': calling(fail('{"code":-1.5e3,"message":"\\ud83d"}')),
  'the error that a URL has to be visited first': calling(
    fail(
      '{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.test","message":"m","vendor":1.0}]}}',
    ),
  ),
  'the error that there is no such method': calling(fail('{"code":-32601,"message":"none"}')),
};
