#include "tamis/lsm/file_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis::lsm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using FileNumber = FileLedger::FileNumber;

class FileLedgerTest : public testing::Test {
 protected:
  static FileLedger::File FileOf(FileNumber number, uint32_t family = 0) {
    return {.number = number, .family = family};
  }
  void Count(FileNumber number, uint32_t family = 0) {
    ledger_.Enter(FileOf(number, family), /*has_keys=*/true, 10, /*is_family_certain=*/false);
  }
  void List(FileNumber number, std::vector<FileNumber> inputs) {
    ledger_.Put(number, {.file = FileOf(number),
                         .has_keys = true,
                         .keys = 10,
                         .inputs = std::make_shared<const std::vector<FileNumber>>(inputs),
                         .is_family_certain = true});
  }
  bool IsCovered(FileNumber number) { return ledger_.Uncovered({FileOf(number)}).empty(); }

  FileLedger ledger_;
};

TEST_F(FileLedgerTest, ListedFileIsCoveredIfAllOfItsInputsAre) {
  Count(1);
  Count(2);
  List(3, {1, 2});
  List(4, {3});
  List(5, {3, 9});
  List(6, {});
  EXPECT_TRUE(IsCovered(1));
  EXPECT_TRUE(IsCovered(4));
  EXPECT_FALSE(IsCovered(5));
  EXPECT_FALSE(IsCovered(6));
  EXPECT_FALSE(IsCovered(7));
}

TEST_F(FileLedgerTest, FileOfAnotherFamilyCoversNothing) {
  Count(1, /*family=*/8);
  List(2, {1});
  EXPECT_FALSE(IsCovered(1));
  EXPECT_FALSE(IsCovered(2));
  Count(1);
  EXPECT_TRUE(IsCovered(2));
  EXPECT_EQ(ledger_.stale(), 10u);
}

TEST_F(FileLedgerTest, ReconcilesFilesMadeOfDeletedFiles) {
  Count(1);
  Count(2);
  Count(3);
  List(4, {1, 2});
  List(5, {3});
  List(6, {4});
  ledger_.Delete(1);
  EXPECT_TRUE(ledger_.IsPartlyDeleted());
  ledger_.Delete(2);
  ledger_.Delete(4);
  EXPECT_FALSE(ledger_.IsPartlyDeleted());
  const FileLedger::Reconciliation chosen = ledger_.Choose(ledger_.removed());
  EXPECT_THAT(chosen.removed, ElementsAre(1, 2));
  EXPECT_THAT(chosen.dropped, ElementsAre(4));
  EXPECT_THAT(chosen.added, ElementsAre(6));
  const auto after = ledger_.Counted(&chosen);
  ASSERT_TRUE(after.has_value());
  ASSERT_EQ(after->size(), 2u);
  EXPECT_EQ(after->at(0).number, 3u);
  EXPECT_EQ(after->at(1).number, 6u);
}

TEST_F(FileLedgerTest, FileOfUnknownInputsJoinsEverySettling) {
  Count(1);
  List(2, {});
  ledger_.Delete(1);
  EXPECT_THAT(ledger_.Choose(ledger_.removed()).added, ElementsAre(2));
}

TEST_F(FileLedgerTest, FileThatIsDeletedWhileItIsCountedIsRemovedAfterwards) {
  ledger_.BeginCounting();
  ledger_.Delete(1);
  EXPECT_THAT(ledger_.removed(), IsEmpty());
  EXPECT_TRUE(ledger_.IsDeleted(1));
  Count(1);
  EXPECT_THAT(ledger_.removed(), ElementsAre(1));
  ledger_.Delete(2);
  ledger_.EndCounting();
  EXPECT_FALSE(ledger_.IsDeleted(2));
  ledger_.Delete(3);
  EXPECT_FALSE(ledger_.IsDeleted(3));
}

TEST_F(FileLedgerTest, DeletionsAreRememberedWhileATicketIsOpen) {
  ledger_.EndCounting();
  const FileLedger::Ticket ticket = ledger_.NewTicket();
  Count(ticket);
  ledger_.Delete(1);
  EXPECT_TRUE(ledger_.IsDeleted(1));
  ledger_.EndTicket(ticket);
  EXPECT_FALSE(ledger_.IsDeleted(1));
  EXPECT_THAT(ledger_.removed(), ElementsAre(ticket));
}

TEST_F(FileLedgerTest, CopiesWithoutAKeyFileBecomeStale) {
  Count(1);
  Count(2);
  ledger_.MarkBad(2);
  EXPECT_FALSE(ledger_.Counted(nullptr).has_value());
  for (const FileNumber number : {1, 2}) {
    ledger_.Delete(number);
    ledger_.MarkReconciled(number);
  }
  EXPECT_EQ(ledger_.stale(), 10u);
  EXPECT_EQ(ledger_.size(), 0u);
  EXPECT_THAT(ledger_.removed(), IsEmpty());
}

}  // namespace
}  // namespace tamis::lsm
