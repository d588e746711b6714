// An acceptor of QuickFIX that reports each order as new. Arguments: HOST PORT TARGET SENDER...

#include <iostream>
#include <sstream>
#include <unistd.h>

#include <quickfix/Application.h>
#include <quickfix/FieldConvertors.h>
#include <quickfix/Log.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/ThreadedSocketAcceptor.h>

class Desk : public FIX::Application {
public:
  void onCreate(const FIX::SessionID &) {}
  void onLogon(const FIX::SessionID &) {}
  void onLogout(const FIX::SessionID &) {}
  void toAdmin(FIX::Message &, const FIX::SessionID &) {}
  void toApp(FIX::Message &, const FIX::SessionID &) throw(FIX::DoNotSend) {}
  void fromAdmin(const FIX::Message &, const FIX::SessionID &) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) {}

  void fromApp(const FIX::Message &m, const FIX::SessionID &id) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) {
    const std::string order = m.getField(11);
    FIX::Message r;
    r.getHeader().setField(35, "8");
    r.setField(6, "0");
    r.setField(11, order);
    r.setField(14, "0");
    r.setField(17, order);
    r.setField(20, "0");
    r.setField(37, order);
    r.setField(38, m.getField(38));
    r.setField(39, "0");
    r.setField(54, m.getField(54));
    r.setField(55, m.getField(55));
    r.setField(60, FIX::UtcTimeStampConvertor::convert(FIX::UtcTimeStamp(), 3));
    r.setField(150, "0");
    r.setField(151, m.getField(38));
    FIX::Session::sendToTarget(r, id);
  }
};

int main(int argc, char **argv) {
  std::ostringstream text;
  text << "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=" << argv[2] << "\nSocketNodelay=Y\nStartTime=00:00:00\nEndTime=00:00:00\n"
       << "UseDataDictionary=N\nBeginString=FIX.4.2\nSenderCompID=" << argv[3] << "\n";
  for (int i = 4; i < argc; i++)
    text << "[SESSION]\nTargetCompID=" << argv[i] << "\n";
  std::istringstream in(text.str());
  FIX::SessionSettings settings(in);
  Desk desk;
  FIX::MemoryStoreFactory store;
  FIX::ThreadedSocketAcceptor acceptor(desk, store, settings);
  acceptor.start();
  std::cout << "listening" << std::endl;
  for (;;)
    pause();
}
