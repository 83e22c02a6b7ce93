// Wine refuses the option of sockets that keeps idle connections open, and Node makes an error of that.
require('node:net').Socket.prototype.setKeepAlive = function setKeepAlive() {
  return this;
};
